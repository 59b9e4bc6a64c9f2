"""Tests of the voters, and of their changes while the quorum runs."""
