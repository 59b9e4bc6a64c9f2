"""What a folder says of its quorum, and what to do when the majority is lost. Values only: no I/O, no clock.

``evidence.py`` holds what was read from folders or from a live log; ``storage/inspection/evidence.py`` reads
it. ``ranking.py`` orders the survivors; ``planning.py`` makes a plan that ``storage/recovery`` applies.
"""
