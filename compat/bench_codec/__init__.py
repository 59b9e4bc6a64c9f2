"""Our codec beside the peers' on the same bytes, in one run."""
