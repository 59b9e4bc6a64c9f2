"""Long runs with real brokers, whose last results are kept beside them."""
