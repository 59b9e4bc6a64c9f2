"""Prometheus and our alarms."""
