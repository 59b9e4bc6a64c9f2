"""A KRaft controller for Apache Kafka: protocol, log, raft, metadata and the server that speaks them."""

__version__ = "0.1.0"
