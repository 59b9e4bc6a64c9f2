"""Clients of other projects and their codecs."""
