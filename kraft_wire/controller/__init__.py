"""The controller: requests and state in, records and responses out. No I/O.

``node`` is the state machine: it routes requests, appends and applies the records of decisions, and holds
each response back until its records are committed. ``decision`` has what every decision shares: its inputs
and results, the sessions of brokers, and the table of APIs. ``apis`` is the controller's own table. The
other packages have the handlers and the rules, one package for each resource: ``topics``, ``partitions``,
``brokers``, ``cluster``, ``config_apis``; ``reading`` serves consumers of the metadata log, ``forwarding``
the requests in a broker's Envelope. ``quotas`` limit what clients may do, ``policies`` ask code of others.

A handler is a pure function of the state and the request. It returns records, changes of broker sessions and
a response. It changes nothing but what is left of the client's quota of changed partitions.
"""
