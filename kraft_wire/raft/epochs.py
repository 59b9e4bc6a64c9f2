"""How high epochs may go. They are 32 bits wide on the wire and in Java's files, and never go back: whoever
could name any epoch would leave a quorum none to elect a leader in.

Kafka believes every epoch that anybody names, voter or not, since sets of voters may lag on either side. So
do we, but no request takes more than a small share of the epochs. A node that was away for longer learns of
higher ones from the answers to what it asks itself, of those that it was configured to ask.
"""

from __future__ import annotations

from typing import Final

MAX_EPOCHS_AT_ONCE: Final = 1 << 20
"""Twelve days of an election a second."""

LAST_EPOCH: Final = (1 << 31) - 1 - MAX_EPOCHS_AT_ONCE
"""No higher epoch is believed, or begun. What is left above it is room for whoever adds to an epoch."""


def is_believable(epoch: int, own_epoch: int) -> bool:
    """Whether a request may name this epoch to a node that is in ``own_epoch``."""
    return epoch == own_epoch or epoch <= min(LAST_EPOCH, own_epoch + MAX_EPOCHS_AT_ONCE)
