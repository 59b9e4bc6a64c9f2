"""Limit the epochs that a peer can make this node accept.

Epochs are 32 bits wide on the wire and in Java's files, and never decrease. A peer that could name any epoch
could use up all of them, and no leader could be elected any more. So there are three ceilings: requests reach
half of all epochs at most, answers three quarters, and only elections go on from there. Above a ceiling an
epoch may still rise by the few that elections need, one after the other. So a node that missed elections
above the ceiling of answers gets there step by step, with one answer after the other.
"""

from __future__ import annotations

from typing import Final

MAX_EPOCHS_PER_REQUEST: Final = 1 << 16
"""Eighteen hours of one election per second."""

FEW_EPOCHS: Final = 16
"""The epochs that elections without a winner may use before one is heard of."""

LAST_EPOCH: Final = (1 << 31) - (1 << 10)
"""The last epoch that is accepted or started. The epochs above it are room for code that adds to an epoch."""

LAST_REQUESTED_EPOCH: Final = 1 << 30
"""The ceiling of requests."""

LAST_ANSWERED_EPOCH: Final = 3 << 29
"""The ceiling of answers: a node that was away for long learns its epoch from those that it asks."""


def is_acceptable_epoch(epoch: int, own_epoch: int) -> bool:
    """Whether a request may name this epoch to a node that is in ``own_epoch``."""
    if epoch <= own_epoch + FEW_EPOCHS:
        return epoch == own_epoch or epoch <= LAST_EPOCH
    return epoch <= min(LAST_REQUESTED_EPOCH, own_epoch + MAX_EPOCHS_PER_REQUEST)


def is_acceptable_answer(epoch: int, own_epoch: int) -> bool:
    """Whether the answer of a node that was asked may name this epoch to a node that is in ``own_epoch``."""
    return epoch == own_epoch or epoch <= LAST_EPOCH


def highest_answered(own_epoch: int) -> int:
    """Return the highest epoch to which one answer takes a node that is in ``own_epoch``."""
    return max(own_epoch, min(max(LAST_ANSWERED_EPOCH, own_epoch + FEW_EPOCHS), LAST_EPOCH))
