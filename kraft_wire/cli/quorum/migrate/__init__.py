"""``kraft-wire quorum migrate --check``: what is in the way of a migration, and the next command.

``facts`` has the values that are known of a quorum and its nodes. ``gather``, ``metadata`` and ``files`` read
them. ``to_dynamic`` (with ``upgrade``), ``to_kraft_wire`` and ``to_java`` (both with ``replacing``) judge
them, one for each target, without I/O. They share ``voters`` (who may be restarted), ``properties`` (what
the files say), ``releases`` and ``commands`` (the command lines). ``report`` shows the verdict.
"""
