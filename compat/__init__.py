"""Everything that needs real Kafka: the harness, interop tests, judges, benchmarks and demos."""
