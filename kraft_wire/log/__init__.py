"""Formats of a log folder's files: record batches, control records, snapshots, indexes, epochs. No I/O."""
