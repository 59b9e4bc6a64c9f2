"""The lake that the pipeline keeps: its files, its protocol, its report, and the way back to a log.

``protocol.py`` has the protocol. A batch is staged, counts from the rename of its marker on, and is then
moved into place file by file, again after a kill. Spark repeats a batch with the same rows until it is
confirmed; a complete batch is skipped. Open rows are replaced with every batch that has news of their
cluster; all other rows stay.

- Folding: when a table of a cluster has 16 files below 1 MiB, the next batch writes one file in their place.
- Power: before the marker, everything below ``_kraft`` is flushed, Spark's checkpoint included. Before
  replaced files are deleted, the folders of their replacements are flushed.
- Readers go by the newest marker (``files.py``) and see whole batches. A plain ``spark.read.parquet``
  doesn't know the marker.
- ``delta.py`` writes a Delta log beside a table's files, between the moves and the deletes of a batch.

``restore.py`` makes a node's folder from rows of ``records``. The node is alone: the log's end gets a
VotersRecord that names only this node, with a new directory id. It is the same cluster by its id, so brokers
that can reach it will follow it. Uncommitted records are restored as well, because a file doesn't say what
was committed.
"""
