"""Metadata folders that our controller, Java's controller and Kafka's tools read after each other."""
