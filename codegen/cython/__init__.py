"""Emit compiled code from the same plans."""
