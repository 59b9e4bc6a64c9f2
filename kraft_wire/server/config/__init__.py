"""Kafka's server.properties as typed values."""
