"""The APIs of topics: creating and deleting them, adding partitions, and placing replicas."""
