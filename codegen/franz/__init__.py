"""Read schemas in franz-go's language."""
