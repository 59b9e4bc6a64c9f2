"""Note in the report of ``quorum status`` whether the states of nodes are equal. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kraft_wire.cli.quorum.status.report import StateRow, StatusReport
from kraft_wire.client.state_digests import NodeState, differing
from kraft_wire.wire.address import Address

_SHORT_DIGEST: Final = 12


def note_states(report: StatusReport, states: Sequence[NodeState], ids: Mapping[Address, int]) -> None:
    """Note the states of nodes, and whether they differ. ``ids`` are those of controllers."""
    report.states = [_state_row(state, ids.get(state.address)) for state in states]
    formulas = {state.formula for state in states if state.digest}
    if len(formulas) > 1:
        report.notes.append("nodes of several releases make their digests differently: compare those of one")
    examples = differing(states)
    if examples:
        named = ", ".join(f"node {state.node_id} has {state.digest[:_SHORT_DIGEST]}" for state in examples)
        report.states_differ = (
            f"the states at offset {examples[0].end_offset} differ: {named}. Copy the log of a node that "
            "differs from the others, then restart it: it builds its state anew from its files"
        )


def _state_row(state: NodeState, known_id: int | None) -> StateRow:
    id = known_id if state.node_id < 0 else state.node_id
    if state.problem:
        return StateRow(id, str(state.address), problem=state.problem)
    return StateRow(id, str(state.address), state.end_offset, state.formula, state.record_count, state.digest)
