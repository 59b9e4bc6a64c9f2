"""Features: supported ranges, finalized levels, and the table of metadata versions."""
