"""Brokers and clients on one controller of ours."""
