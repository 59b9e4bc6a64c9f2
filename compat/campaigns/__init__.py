"""Long runs with real brokers and real controllers, whose last results are kept beside them."""
