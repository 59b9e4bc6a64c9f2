"""The simulated network: links and connections."""
