"""Limit the epochs that a peer can make this node accept.

Epochs are 32 bits wide on the wire and in Java's files, and never decrease. A peer that could name any epoch
could use up all of them, and no leader could be elected any more.

Kafka accepts every epoch from any peer, voter or not, because sets of voters may lag on either side. So does
this implementation, but one request can raise the epoch by a small share of all epochs only. A node that was
away for longer learns higher epochs from the answers to its own requests, which it sends to configured nodes
only.
"""

from __future__ import annotations

from typing import Final

MAX_EPOCHS_PER_REQUEST: Final = 1 << 20
"""Twelve days of one election per second."""

LAST_EPOCH: Final = (1 << 31) - 1 - MAX_EPOCHS_PER_REQUEST
"""The last epoch that is accepted or started. The epochs above it are room for code that adds to an epoch."""


def is_acceptable_epoch(epoch: int, own_epoch: int) -> bool:
    """Whether a request may name this epoch to a node that is in ``own_epoch``."""
    return epoch == own_epoch or epoch <= min(LAST_EPOCH, own_epoch + MAX_EPOCHS_PER_REQUEST)
