"""The APIs and rules of partitions: leaders, ISRs, elections and log directories."""
