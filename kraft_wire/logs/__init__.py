"""Metadata logs in folders and live quorums: found, walked, split and read. No Arrow, no Spark.

A ``LogStore`` (``store.py``) answers where logs are and reads pieces of them. ``folder_store.py`` is the
store on disk: ``folders.py`` finds copies of logs, ``copy.py`` finds how far each copy can be read, and
``copies.py`` makes one log of several copies: the copy with the highest epoch and then the highest offset,
and below its start another copy that holds the record there. ``splits.py`` cuts a range into pieces that
start at batches. ``pages.py`` reads a megabyte at a time; checksum, offset and epoch of each batch are
checked, and a torn tail is no damage. ``live_store.py`` is the store over the wire. ``positions.py`` names
positions by cluster, epoch and offset, the same on disk and over the wire.
"""
