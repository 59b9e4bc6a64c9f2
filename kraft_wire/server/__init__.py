"""The trio shell: listeners, connections, timers, files. It decides nothing.

``main.py`` locks and checks the folder, recovers the log, loads the newest snapshot, replays what is known
to be committed, and starts the node. ``owner.py`` is the only task that touches the node: it feeds it events
and executes its effects in order. Slow work (the log's flush, reads of committed batches, snapshots) runs in
threads or in a process of its own and comes back as events.

Group commit: a batch is written at once, and a flush starts unless one is running. Batches that arrive
meanwhile are written and are covered by the next flush. No request waits for a timer.
"""
