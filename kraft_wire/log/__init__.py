"""Record batches, offsets, epochs, and the formats of a log folder's files."""
