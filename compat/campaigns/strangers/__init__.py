"""Let strangers attack controllers under load: ``make campaign-strangers``.

``phases`` runs a quorum of three and a lone controller through quiet and hostile times. ``attackers`` is the
process of the strangers: ``drawing`` chooses what they send, ``fake_leader`` answers who believes them.
``load`` creates topics and sends heartbeats meanwhile, and ``watch`` looks who leads. ``rules`` judges what
was seen, ``report`` writes it down.
"""
