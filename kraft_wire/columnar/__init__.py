"""Many records at once: from the bytes of a log to columns, without an object a record.

Nothing here knows what records mean. Replay, snapshots' loading and the data source for Spark use it; the
generated decoder reads what this cannot (``Unreadable``), and judges what is malformed.
"""
