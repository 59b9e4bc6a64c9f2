"""Spark sessions, and the tables that a metadata log must give."""
