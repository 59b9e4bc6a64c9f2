"""Say how the election of one partition went (ElectLeaders)."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.controller.partitions.partition_change import Election
from kraft_wire.protocol.errors import ErrorCode, cut_message
from kraft_wire.protocol.messages.elect_leaders_response import PartitionResult


def success(index: int) -> PartitionResult:
    """Return the result of a partition that got a leader."""
    return PartitionResult(partition_id=index, error_message=None)


def failure(index: int, election: Election, replicas: Sequence[int]) -> PartitionResult:
    """Return the result of a partition that none of the replicas may lead, or not the first of them."""
    if election is Election.PREFERRED:
        preferred = replicas[0] if replicas else -1
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        return refusal(index, code, f"broker {preferred} is not active or not in sync")
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    return refusal(index, code, f"none of the brokers {list(replicas)} is active")


def refusal(index: int, code: ErrorCode, message: str) -> PartitionResult:
    """Return the result of a partition for which no election was held."""
    return PartitionResult(partition_id=index, error_code=code, error_message=cut_message(message))
