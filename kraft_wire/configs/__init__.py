"""Kafka's configuration keys: types, defaults, bounds, synonyms, layers and validation."""
