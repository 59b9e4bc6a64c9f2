"""The APIs that read and change configurations."""
