"""The codecs of other Kafka clients, behind one interface."""
