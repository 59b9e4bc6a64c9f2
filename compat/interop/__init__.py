"""Interop tests: real Kafka brokers, tools and clients."""
