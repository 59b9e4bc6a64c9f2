"""Our controller beside Java's, in one run, with the same client."""
