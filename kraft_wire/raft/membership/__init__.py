"""The voter set: its values, its history in the log, and its records."""
