"""Files: segments, checkpoints, quorum-state, meta.properties, and their fsyncs."""
