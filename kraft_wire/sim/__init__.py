"""The deterministic simulator: the real core on simulated machines. One seed is one run, bit for bit.

``kraft-wire sim --seed N`` runs several raft cores on simulated machines; with ``--controllers`` it runs
whole nodes with brokers and an administrator around them. Each run ends with the hash of its trace, one line
an event.

- ``options.py`` says what a run is made of. ``swarm.py`` draws options and the schedule of faults from the
  seed before the run starts; ``faults.py`` says what each kind of fault does. Each purpose has its own
  random stream (``randomness.py``), so that leaving out one fault moves no other. ``minimise.py`` relies on
  that.
- ``scheduler.py`` is one heap of acts by microsecond. ``network`` delays, holds back and breaks connections.
  ``machines`` has nodes, disks and clocks; a disk keeps flushed and unflushed bytes apart.
- A step of a node takes time: ``machines/handler_cost.py`` says how much, and what comes meanwhile waits in
  ``machines/event_loop.py``.
- Raft, the controller and the decisions of log recovery are the product's code. Files are simulated:
  segments, indexes, the search for whole batches, and how quorum-state reaches the disk. Bugs of the files
  themselves are for ``tests/storage`` and the chaos tests in ``compat``.
- ``checkers`` holds the invariants, one a class, fed with every event.
- ``simulation.py`` has the phases: faults; then a majority heals and must converge; then all nodes return.
- ``population`` has those who act on the nodes: clients, brokers, administrators, strangers. Its
  ``disasters.py`` destroys the disks of a majority, and ``operators.py`` recovers the quorum with the
  decisions of ``raft/recovery``.

Not simulated yet: reassignments, a mix of versions, the recovery of static quorums.
"""
