"""Faults of networks, disks and processes under a cluster at work, and the check that nothing was lost."""
