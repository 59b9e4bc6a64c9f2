"""The quorum, without I/O: events in, effects out."""
