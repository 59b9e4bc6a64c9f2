"""Emit the Python module of a message from its schema."""
