"""Other codecs of Kafka's protocol, wrapped so that tests can drive each of them the same way."""
