"""Benchmarks of our controller, codec and tables beside Java's and other projects'."""
