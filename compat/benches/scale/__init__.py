"""Measure controllers with very many partitions: what a broker's end costs, and what others notice of it."""
