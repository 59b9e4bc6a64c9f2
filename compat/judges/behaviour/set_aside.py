"""The steps that aren't played, and those with which a script ends, because the two controllers are meant to
differ in them.

After such a step the two clusters would be different ones, so that nothing could be compared any more. Each
has a test of its own, and stands in docs/differences.md. The report counts them by reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from compat.judges.behaviour.forms import Form, codes_in, text_of_form
from compat.judges.behaviour.known import Known
from compat.judges.behaviour.outcome import Outcome
from compat.judges.behaviour.quorum_steps import BeginEpoch, EndEpoch
from compat.judges.behaviour.step import uuid_of
from compat.judges.behaviour.steps import (
    AnyStep,
    Beat,
    CreatePartitions,
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
        case Register() if _replaces_silent(step, known):
            return "the session of a broker that stops ends with it; Java's lasts (KAFKA-19047)"
        case Register() if _is_same_process(step, known) and step.broker in known.stopping() - known.fenced():
            return "a broker that registers again goes on to stop; Java's controller forgets that it stops"
        case Beat() if step.broker in known.stopping() & known.fenced() and not (step.stop or step.fence):
            return (
                "a broker that was fenced as it stopped stays fenced; Java unfences it after a late heartbeat"
            )
        case Reassign() if _replaces_another(step, known):
            return "a reassignment that replaces another begins from the replicas before that one"
        case CreatePartitions() if step.assignments and known.has_several_factors(step.topic):
            return "the number of new replicas is that of partition 0; Java takes any partition's"
        case UpdateFeatures(version=0) if any(kind > 1 for _, _, kind in step.updates):
            return "version 0 asks for a downgrade with a flag, which Java's controller ignores"
        case BeginEpoch(fault="none") | EndEpoch(fault="none"):
            return "Java's controller ends when somebody says that another leads its epoch"
    return None


def why_not_compared(step: AnyStep, ours: Outcome, java: Outcome, known: Known) -> str | None:
    """Return the reason for which a script ends with a step that isn't compared; None if it is compared.

    ``known`` is what Java's controller has told, in this step too.
    """
    if ours.has_failed:
        return None
    is_error = ErrorCode.UNKNOWN_SERVER_ERROR in codes_in(java.answer)
    if is_error and known.has_leftovers and isinstance(step, Register | Unregister | Beat):
        return "Java's controller fails where a topic with an empty ISR or a cleared ELR was deleted"
    if _are_written_twice(ours.records, java.records):
        return "Java's controller writes a partition's change twice if a broker that goes is in ISR and ELR"
    if known.keeps_removed:
        return "a replica that is removed isn't an eligible leader any more; in Java it stays one"
    return None


def why_last(step: AnyStep, javas_records: Sequence[Form]) -> str | None:
    """Return the reason for which a script ends with a step that was equal; None if it goes on."""
    if isinstance(step, CreateTopics) and step.is_placed_by_chance and javas_records:
        return "replicas are placed by chance"
    return None


def _are_written_twice(ours: Sequence[Form], javas: Sequence[Form]) -> bool:
    changes = [text_of_form(each) for each in javas if each["name"] == "PartitionChangeRecord"]
    are_same = set(map(text_of_form, ours)) == set(map(text_of_form, javas))
    return are_same and len(set(changes)) < len(changes)


def _replaces_silent(step: Register, known: Known) -> bool:
    is_there = known.state.brokers.get(step.broker) is not None
    return is_there and step.broker in known.silent and not _is_same_process(step, known)


def _is_same_process(step: Register, known: Known) -> bool:
    broker = known.state.brokers.get(step.broker)
    return broker is not None and broker.incarnation_id == uuid_of(2, step.broker, step.incarnation)


def _replaces_another(step: Reassign, known: Known) -> bool:
    moved = (known.partition(move.topic, move.partition) for move in step.moves if move.replicas is not None)
    return any(each is not None and (each.adding_replicas or each.removing_replicas) for each in moved)
