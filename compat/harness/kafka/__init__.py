"""Kafka's nodes, clusters and command-line tools, and our controller among them."""
