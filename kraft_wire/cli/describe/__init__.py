"""``kraft-wire describe``: the metadata of a cluster, now or in the past, on one screen.

``reading`` finds the log and builds the metadata. Each other module makes the rows of one screen. ``screens``
knows them all, and ``table`` prints rows. ``describe`` has the options.
"""
