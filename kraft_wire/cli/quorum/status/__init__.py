"""``kraft-wire quorum status``: the state of a quorum, with a leader or without, on line or from folders.

``report`` is what it shows. ``leader``, ``answers`` and ``folders`` make it, each of its own source;
``split`` and ``states`` add whether the cluster is split, and whether all have the same metadata. ``text``
prints it. ``status`` asks and reads.
"""
