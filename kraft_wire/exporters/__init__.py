"""Send the committed records of the metadata log elsewhere, at least once and in order.

The active controller starts ``python -m kraft_wire.exporters`` (``process.py``), a process of its own, so
that neither decoding nor a slow sink costs the controller's event loop anything. It reads the controller's
own files (``reading.py``), gets the high watermark over its standard input, and tells over its standard
output what was exported (``messages.py``).

Each exporter is one task (``exporting.py``) with a sink of its own (``sinks/``), which does what its
``Cursor`` (``cursor.py``) says: what to read next, when to send it, when to try again. ``settings.py`` reads
the keys, ``filters.py`` leaves records out, ``records.py`` decodes a record only when somebody looks into it,
``positions.py`` remembers what was exported. A new kind of sink is a module in ``sinks/`` and a row of
``kinds.py``.
"""
