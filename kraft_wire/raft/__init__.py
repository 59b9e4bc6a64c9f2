"""The quorum without I/O: events in, effects out.

``core.py`` takes one event and returns effects. Roles are frozen values in ``roles.py``; the allowed
transitions are a table there. After every step ``duties.py`` sends what the current role must send: a
follower's Fetch, a candidate's Vote requests, a leader's BeginQuorumEpoch, a resigned leader's
EndQuorumEpoch. Duties are idempotent, because ``outgoing.py`` knows which requests are in flight, to which
peer, and which peer has just failed. Responses come back by request id; a response to a request of an
earlier role is ignored.

Rules that hold everywhere in this package:

- A Fetch acknowledges everything below its offset. So a follower sends no Fetch while anything that it
  appended is not flushed.
- ``Flushed`` carries the generation of the log. The log may be truncated and grow again while a flush runs;
  a ``Flushed`` of an older generation changes nothing.
- A follower has evidence that its leader is gone when the connection breaks, when the leader says that it
  resigned, or when it answers that it no longer leads. Then the follower stands for election after a few
  random milliseconds and grants pre-votes to others. Without evidence the fetch timeout decides.
- A fetched snapshot replaces the log only after it was verified and flushed. Then the log, the older
  snapshots and the state are replaced in one step, and ``StateLoaded`` brings the new state. While a large
  snapshot is verified, the follower asks for its last byte again from time to time: this acknowledges
  nothing, and keeps leader and follower aware of each other.
- Impossible answers are rejected (``follower/rejected_answers.py``, ``epoch_limits.py``): they change
  nothing, are logged, and don't count as hearing from the leader. A follower never truncates what it knows
  to be committed.
"""
