"""Metrics and health of a node, without I/O.

``definitions`` is the table of all metrics, with the names that dashboards for Kafka know them by. ``counts``
follows the node's steps; ``readings`` reads the node when somebody asks; ``families`` joins both to what
prometheus_client prints. ``health`` decides whether the node is ready. ``server/http/`` serves all that.
"""
