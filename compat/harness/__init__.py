"""Real processes for interop tests, demos and benchmarks: Kafka nodes, our controller, tools and clients.

All calls block. Closing a ``Workspace`` stops everything that was started in it.
"""
