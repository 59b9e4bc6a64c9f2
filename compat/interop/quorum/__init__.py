"""Several controllers: elections, replication, damage and chaos."""
