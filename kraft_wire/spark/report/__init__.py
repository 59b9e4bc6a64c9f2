"""One HTML page about clusters, from the derived tables: pure functions from Arrow to text."""
