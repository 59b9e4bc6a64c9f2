"""Metadata logs as tables, with Spark and real clusters."""
