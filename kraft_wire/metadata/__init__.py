"""The state that metadata records build."""
