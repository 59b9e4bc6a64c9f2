"""Simulated clients, brokers and administrators."""
