"""The codec and the schema language against Kafka's own."""
