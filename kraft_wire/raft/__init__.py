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
  resigned, or when it answers that it no longer leads. Then the followers stand for election in turns
  (``election/turns.py``), the first at once, and grant pre-votes to others. A longer log goes before a turn.
  A resigned leader's first successor needs no pre-votes. Without evidence the fetch timeout decides.
- Turns only save time: neither safety nor liveness depends on them. Votes decide, later turns come whatever
  the first did, and after an election without a winner the waits are random.
- A follower that would reject a pre-vote because it trusts its leader answers a few milliseconds later: the
  news that the leader is gone may be on its way (``election/doubts.py``).
- A vote of a higher epoch whose candidate isn't believed is refused 100 ms late, because Java repeats it
  without a pause (``election/doubts.py``).
- The epoch of a node that has just started rises by answers, not by requests (``door/claims.py``).
- A fetched snapshot replaces the log only after it was verified and flushed. Then the log, the older
  snapshots and the state are replaced in one step, and ``StateLoaded`` brings the new state. While a large
  snapshot is verified, the follower asks for its last byte again from time to time: this acknowledges
  nothing, and keeps leader and follower aware of each other.
- A voter set counts on every node from the moment its record is appended until it is truncated. One change at
  a time, begun by a leader that has committed in its own epoch, keeps any two majorities overlapping
  (``membership/change.py``).
- Requests prove nothing. They raise the epoch only where that can help an election (``door/claims.py``), and
  name leaders only as hints (``election/follow_hints.py``). What counts are the answers of the nodes that
  this node asks, at the addresses in its voter set and its configuration.
- Impossible answers are rejected (``follower/rejected_answers.py``, ``epoch_limits.py``): they change
  nothing, are logged, and don't count as hearing from the leader. A follower never truncates what it knows
  to be committed.
"""
