"""The APIs of reassignments: moving the replicas of partitions to other brokers. KIP-455."""
