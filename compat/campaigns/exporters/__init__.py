"""Let controllers with exporters of all kinds fail: ``make campaign-exporters``.

``trial`` runs the cluster and its faults, ``hooks`` are the webhooks, ``sinks`` reads what the sinks have.
``rules`` judges it, ``report`` writes it down.
"""
