"""Recover a node's files when it starts, and repair them for an operator."""
