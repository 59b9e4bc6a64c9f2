"""Simulated machines: nodes, disks and clocks."""
