"""The active controller: requests and state in, records and responses out."""
