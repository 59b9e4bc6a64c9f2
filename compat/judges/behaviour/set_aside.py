"""The steps that aren't played, because the two controllers are meant to differ in them.

After such a step the two clusters would be different ones, so that nothing could be compared any more. Each
has a test of its own, and stands in docs/differences.md.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from compat.judges.behaviour.forms import Form
from compat.judges.behaviour.known import Known
from compat.judges.behaviour.quorum_steps import BeginEpoch, EndEpoch
from compat.judges.behaviour.step import uuid_of
from compat.judges.behaviour.steps import (
    AnyStep,
    Beat,
    CreateTopics,
    Reassign,
    Register,
    Unregister,
    UpdateFeatures,
)
from kraft_wire.protocol.errors import ErrorCode


def why_set_aside(step: AnyStep, known: Known) -> str | None:
    """Return the reason for which a step isn't played; None if it is played."""
    match step:
        case Register() if _replaces_stopped(step, known):
            return "the session of a broker that stops ends with it; Java's lasts (KAFKA-19047)"
        case Beat() if step.broker in known.stopped and not step.stop:
            return "a broker that was told to stop stays fenced; Java unfences it after a late heartbeat"
        case Reassign() if _replaces_another(step, known):
            return "a reassignment that replaces another begins from the replicas before that one"
        case UpdateFeatures(version=0) if any(kind > 1 for _, _, kind in step.updates):
            return "version 0 asks for a downgrade with a flag, which Java's controller ignores"
        case BeginEpoch(fault="none") | EndEpoch(fault="none"):
            return "Java's controller ends when somebody says that another leads its epoch"
    return None


def why_over(step: AnyStep, javas_codes: Collection[int], javas_records: Sequence[Form]) -> str | None:
    """Return the reason for which a script ends with a step; None if it goes on."""
    if isinstance(step, Register | Unregister | Beat) and ErrorCode.UNKNOWN_SERVER_ERROR in javas_codes:
        return "Java's controller fails where a topic with an empty ISR or a cleared ELR was deleted"
    if isinstance(step, CreateTopics) and step.is_placed_by_chance and javas_records:
        return "replicas are placed by chance"
    if any(map(_keeps_removed_in_elr, javas_records)):
        return "a replica that is removed isn't an eligible leader any more; in Java it stays one"
    return None


def _keeps_removed_in_elr(record: Form) -> bool:
    data = record["data"]
    return "replicas" in data and not set(data.get("eligibleLeaderReplicas") or ()) <= set(
        data["replicas"] or ()
    )


def _replaces_stopped(step: Register, known: Known) -> bool:
    broker = known.state.brokers.get(step.broker)
    return (
        broker is not None
        and step.broker in known.stopped
        and broker.incarnation_id != uuid_of(2, step.broker, step.incarnation)
    )


def _replaces_another(step: Reassign, known: Known) -> bool:
    moved = (known.partition(move.topic, move.partition) for move in step.moves if move.replicas is not None)
    return any(each is not None and (each.adding_replicas or each.removing_replicas) for each in moved)
