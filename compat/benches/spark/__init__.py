"""Measure how fast metadata logs become tables."""
