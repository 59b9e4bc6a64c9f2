"""Independent implementations to compare ours with: Kafka's own classes and the codecs of other clients."""
