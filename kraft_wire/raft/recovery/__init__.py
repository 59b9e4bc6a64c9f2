"""What a folder says of its quorum, and what to do when the majority is lost. Values only: no I/O, no clock.

``evidence.py`` holds what was read from folders or from a live log; ``storage/inspection/evidence.py`` reads
it, the log with ``log_evidence.py``. ``node_role.py`` tells brokers from controllers. ``ranking.py`` orders
the survivors; ``planning.py`` makes a plan, which ``plan.py`` holds; ``static_quorum.py`` knows voters that
are in the configuration. ``storage/planned_recovery.py`` applies a plan, in the steps of ``applying.py``.
"""
