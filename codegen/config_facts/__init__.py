"""The facts of Kafka's configuration definitions: extracted by a small Java program, emitted as Python."""
