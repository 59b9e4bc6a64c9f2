"""The requests that brokers forward for their clients."""
