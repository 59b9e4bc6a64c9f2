"""Ports of the server."""
