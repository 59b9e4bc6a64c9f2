"""The node id and the cluster of an observer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraft_wire.cli.errors import CommandError, UsageError
from kraft_wire.cli.observe.joining import (
    FIRST_DEFAULT_ID,
    LAST_ID,
    check_cluster,
    check_id,
    check_known,
    choose_id,
    ids_of,
)
from kraft_wire.client.quorum_description import QuorumDescription, ReplicaDescription
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.uuid import Uuid


def replica(id: int) -> ReplicaDescription:
    return ReplicaDescription(id, Uuid.ZERO, 0, 0, 0)


def test_a_default_id_is_one_that_nobody_numbers_nodes_with() -> None:
    assert choose_id(None, {1, 2, 3}, lambda bound: 0) == FIRST_DEFAULT_ID
    assert choose_id(None, {1, 2, 3}, lambda bound: bound - 1) == LAST_ID - 1


def test_a_default_id_that_is_taken_is_drawn_again() -> None:
    numbers: Iterator[int] = iter([5, 5, 6])
    taken = {FIRST_DEFAULT_ID + 5}
    assert choose_id(None, taken, lambda bound: next(numbers)) == FIRST_DEFAULT_ID + 6


def test_an_id_that_the_quorum_knows_is_refused() -> None:
    with pytest.raises(CommandError, match="--node-id 2 is the id of another node of the cluster"):
        choose_id(2, {1, 2, 3}, lambda bound: 0)
    assert choose_id(4, {1, 2, 3}, lambda bound: 0) == 4


def test_the_quorum_knows_its_voters_and_those_who_fetch() -> None:
    described = QuorumDescription(
        ErrorCode.NONE, voters=(replica(1), replica(2)), observers=(replica(11), replica(12))
    )
    assert ids_of(described) == {1, 2, 11, 12}


@pytest.mark.parametrize("node_id", [-1, 2**31])
def test_an_impossible_id_is_wrong_usage(node_id: int) -> None:
    with pytest.raises(UsageError, match=f"--node-id {node_id} is not within 0 to 2147483647"):
        check_id(node_id)


def test_a_folder_keeps_its_id() -> None:
    check_known("/data", 5, None)
    check_known("/data", 5, 5)
    with pytest.raises(CommandError, match="--node-id 6: /data is the folder of observer 5"):
        check_known("/data", 5, 6)


def test_a_folder_keeps_its_cluster() -> None:
    check_cluster("/data", "ours", "ours", "host1:9093")
    with pytest.raises(
        CommandError, match="/data holds the log of cluster ours, host1:9093 says theirs; give another --dir"
    ):
        check_cluster("/data", "ours", "theirs", "host1:9093")
