"""Real processes for interop tests, demo and benchmarks: Kafka nodes, our controller, tools and clients.

Everything is synchronous and everything that was started is stopped when its ``Workspace`` closes.
"""
