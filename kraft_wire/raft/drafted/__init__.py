"""Speak KIP-853 as it was drafted, on listeners of its own.

The draft has other layouts of Vote, Fetch and FetchSnapshot, and UpdateVoter (77) where Kafka has
UpdateRaftVoter (82). ``dialect`` has all of them; each of the other modules translates one API between the
generated messages of ``raft/membership/kip_853`` and Kafka's. The core is the same; it has the two rules that
the released protocol doesn't have (``door/drafted_votes.py``).
"""
