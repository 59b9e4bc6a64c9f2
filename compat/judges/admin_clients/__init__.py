"""Scripts for the administration clients of other projects. Each returns what the client was told, as lines.

A cluster of our controller and one of Java's must tell the same. Replicas are assigned by hand, so that
chance has no part in it.
"""
