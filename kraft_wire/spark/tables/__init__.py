"""What a metadata log says of its clusters, as tables: plain functions of DataFrames.

``cluster`` is the first key of every table. An interval of offsets includes its start and not its end, which
is null while it lasts. Records count when they take effect: those of a metadata transaction at its end, those
of one that was aborted, or is still open, never.
"""
