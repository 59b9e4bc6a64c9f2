"""All partitions, in columns."""
