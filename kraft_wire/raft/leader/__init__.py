"""The leader: append records, serve fetches and snapshots, notify the other voters."""
