"""Our controller beside real Apache Kafka: harness, interop tests, demo, benchmarks."""
