"""Compare the speed of our codec with those of other clients and Java, on the same bytes in one run."""
