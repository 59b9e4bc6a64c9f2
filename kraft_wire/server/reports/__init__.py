"""Report to operators: the log events of a running node, and watches of its leader and its peers.

What follows the steps of the node is a ``Tap`` (server/owner.py), and ``server/main.py`` lists the taps.
Metrics are one, too (``kraft_wire.metrics.counts``).
"""
