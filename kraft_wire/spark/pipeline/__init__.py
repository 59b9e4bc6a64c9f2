"""Keep the tables of many clusters up to date: one stream of ``records``, from which every batch writes all
tables.

A batch writes its records and, from their JSON, the typed tables. Then every derived table continues from
its own open rows, which are all the state there is. Records of an open metadata transaction wait in a hidden
table.

- Up to 20,000 records (and 8 MiB of open rows) the driver holds the rows, because starting Spark's plans
  costs seconds (``driver_writer.py``). Larger batches go from file to file in Spark (``spark_writer.py``).
  Tables and files are the same.
- Spark counts the batches in its checkpoint. A target whose checkpoint is missing or belongs to another
  target is an error: batches with existing numbers would be skipped.
- Through Spark Connect (``--remote``) a Python process of the server applies the batches
  (``connect_worker.py``). It holds the lake for one batch only. Between batches the command's own lock keeps
  other commands out.
"""
