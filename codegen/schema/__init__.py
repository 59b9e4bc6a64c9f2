"""Schemas as values: read, named, checked."""
