"""The quotas that the controller itself enforces: of changed partitions, the time of requests, connections.

``applicable`` finds the quota that applies to a client. ``mutations`` counts the partitions that clients
create and delete (KIP-599), ``request_times`` the time that the controller works for them (KIP-124), and
``connections`` those of an address (KIP-612). All that is soft state: a restart forgets it, and other
controllers don't know it.
"""
