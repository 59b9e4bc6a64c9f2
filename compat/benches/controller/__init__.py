"""Compare our controller with Java's in one run, with the same client."""
