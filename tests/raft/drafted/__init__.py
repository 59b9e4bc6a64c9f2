"""Tests of KIP-853 as it was drafted."""
