"""Kafka's protocol: primitive types, message codecs, error codes and the generated messages."""
