"""Keep the metadata log on disk: segments, indexes, and the durable floor; read and walk its files."""
