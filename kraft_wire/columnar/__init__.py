"""Many records at once: from the bytes of a log to columns, without a Python object for each record.

``page.py`` finds the records: following their lengths is the only loop over records, everything after it
gathers a field of all records at once (``records.py``, ``fields.py``, ``metadata.py``). A page with anything
unusual raises ``Malformed`` and is read record by record by the generated decoder, which names the error.
The same columns serve replay on standbys, snapshots, and the tables.
"""
