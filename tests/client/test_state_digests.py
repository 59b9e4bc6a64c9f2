"""Digests of several nodes are of one offset, though the log grows while they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.client.state_digests import NOT_SERVED, OFFSETS, NodeState, at_one_offset, differing
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.wire.address import Address

ONE, TWO, THREE = (Address("c", port) for port in (1, 2, 3))


class Nodes:
    """Nodes, by address, with the ends of their logs, which grow by ``growth`` before each question, and by
    more while they wait for an offset. Those that have no end don't answer."""

    def __init__(self, ends: dict[Address, int | None], growth: int = 0) -> None:
        self.ends = ends
        self.growth = growth
        self.asked: list[tuple[list[Address], int]] = []

    def ask(self, asked: Sequence[Address], offset: int) -> list[NodeState]:
        self.asked.append((list(asked), offset))
        return [self._answer(address, offset) for address in asked]

    def _answer(self, address: Address, offset: int) -> NodeState:
        end = self.ends[address]
        if end is None:
            return NodeState(address, problem=NOT_SERVED)
        end += self.growth
        if end < offset:
            end = min(offset, end + 20 * self.growth)
        self.ends[address] = end
        if end == offset:
            return NodeState(address, node_id=address.port, end_offset=offset, formula=1, digest="aa")
        error = ErrorCode.OFFSET_OUT_OF_RANGE if end > offset else ErrorCode.REQUEST_TIMED_OUT
        return NodeState(address, error, error.name, address.port, end)


def test_the_nodes_of_a_quiet_cluster_are_asked_once() -> None:
    nodes = Nodes({ONE: 50, TWO: 50})
    states = at_one_offset(nodes.ask, [ONE, TWO], 50)
    assert [state.end_offset for state in states] == [50, 50]
    assert len(nodes.asked) == 1


def test_a_node_that_is_past_the_offset_says_where_all_are_asked_next() -> None:
    nodes = Nodes({ONE: 9_000, TWO: 9_003}, growth=1)
    states = at_one_offset(nodes.ask, [ONE, TWO], 8_999)
    assert {state.digest for state in states} == {"aa"}
    (at,) = {state.end_offset for state in states}
    assert at > 9_003
    assert len(nodes.asked) == 2


def test_an_offset_that_no_log_reaches_is_followed_by_its_end() -> None:
    """The log grew fast, and then no more."""
    nodes = Nodes({ONE: 1_000, TWO: 1_000})
    states = at_one_offset(nodes.ask, [ONE, TWO], 50)
    assert {(state.problem, state.digest) for state in states} == {("", "aa")}


def test_the_offset_is_as_far_ahead_as_the_log_grows_fast() -> None:
    nodes = Nodes({ONE: 50, TWO: 50}, growth=1_000)
    states = at_one_offset(nodes.ask, [ONE, TWO], 50)
    assert {(state.problem, state.digest) for state in states} == {("", "aa")}


def test_a_log_that_is_always_past_the_offset_is_given_up_with_its_problem() -> None:
    asked: list[int] = []

    def ask(addresses: Sequence[Address], offset: int) -> list[NodeState]:
        asked.append(offset)
        return [NodeState(ONE, ErrorCode.OFFSET_OUT_OF_RANGE, "it is past it", 1, 2 * offset)]

    (state,) = at_one_offset(ask, [ONE], 50)
    assert state.error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert len(asked) == OFFSETS


def test_a_node_that_does_not_answer_is_asked_once_and_has_its_problem() -> None:
    nodes = Nodes({ONE: 70, TWO: None, THREE: 60}, growth=5)
    states = at_one_offset(nodes.ask, [ONE, TWO, THREE], 50)
    assert [state.problem for state in states] == ["", NOT_SERVED, ""]
    assert [asked for asked, _ in nodes.asked] == [[ONE, TWO, THREE], [ONE, THREE]]


def test_a_node_with_two_addresses_is_counted_once() -> None:
    def ask(asked: Sequence[Address], offset: int) -> list[NodeState]:
        return [NodeState(address, node_id=7, end_offset=offset, digest="aa") for address in asked]

    assert [state.address for state in at_one_offset(ask, [ONE, TWO], 50)] == [ONE]


def state(digest: str, end_offset: int = 50, formula: int = 1) -> NodeState:
    return NodeState(ONE, end_offset=end_offset, formula=formula, digest=digest)


def test_states_differ_if_their_digests_do() -> None:
    assert differing([state("aa"), state("aa")]) == []
    assert differing([state("aa"), state("bb"), state("aa")]) == [state("aa"), state("bb")]


def test_states_of_several_offsets_or_formulas_are_not_compared() -> None:
    assert differing([state("aa"), state("bb", end_offset=51)]) == []
    assert differing([state("aa"), state("bb", formula=2)]) == []
    assert differing([state("aa"), state("bb", end_offset=51), state("cc")]) == [state("aa"), state("cc")]
