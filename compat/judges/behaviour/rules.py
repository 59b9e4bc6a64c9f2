"""The differences between Java's controller and ours that may be, each with its reason.

A rule changes a step's outcome on both sides so that what it allows looks equal. Anything that still differs
is a difference without an explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, NamedTuple

from compat.judges.behaviour.forms import (
    Form,
    codes_in,
    in_one_order,
    with_each_object,
    without,
)
from compat.judges.behaviour.known import CONTROLLER_ID
from compat.judges.behaviour.order import without_chance
from compat.judges.behaviour.outcome import Asked, Outcome
from compat.judges.behaviour.quorum_steps import DescribeQuorum, FetchSnapshot, QuorumStep
from compat.judges.behaviour.steps import (
    ApiVersions,
    Beat,
    CreateTopics,
    DeleteTopics,
    DescribeCluster,
    DescribeConfigs,
    DescribeScram,
    DescribeTokens,
)
from compat.judges.behaviour.times import at_our_times
from kraft_wire.configs.own_keys import PREFIX
from kraft_wire.protocol.errors import ErrorCode

FENCE: Final = 1
"""What a BrokerRegistrationChangeRecord has where it fences."""
Both = tuple[Outcome, Outcome]
"""Our outcome and Java's."""


class Rule(NamedTuple):
    """A difference that may be. ``apply`` gets the step, our outcome and Java's."""

    name: str
    reason: str
    apply: Callable[[Asked, Outcome, Outcome], Both]


def _on_both(change: Callable[[Outcome], Outcome]) -> Callable[[Asked, Outcome, Outcome], Both]:
    return lambda asked, ours, java: (change(ours), change(java))


def _drop(*names: str) -> Callable[[Outcome], Outcome]:
    dropped = frozenset(names)

    def change(outcome: Outcome) -> Outcome:
        return Outcome(
            without(outcome.answer, dropped.__contains__),
            tuple(without(record, dropped.__contains__) for record in outcome.records),
        )

    return change


def _sort(outcome: Outcome) -> Outcome:
    return Outcome(in_one_order(outcome.answer), outcome.records)


def _sort_records(outcome: Outcome) -> Outcome:
    return Outcome(outcome.answer, without_chance(outcome.records))


_OWN_KEYS: Final = frozenset(
    {
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
    }
)


def _hide(name: str, is_its_own: Callable[[Form], bool]) -> Callable[[Outcome], Outcome]:
    """Hide a field of the answer's objects that are as ``is_its_own`` says."""

    def change(outcome: Outcome) -> Outcome:
        hidden = with_each_object(
            outcome.answer, lambda each: {**each, name: "its own"} if is_its_own(each) else each
        )
        return Outcome(hidden, outcome.records)

    return change


def _has_a_text(form: Form) -> bool:
    return bool(form.get("documentation"))


def _is_of_this_node(form: Form) -> bool:
    return "value" in form and form.get("name") in _OWN_KEYS


def _drop_own_address(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    if not isinstance(asked.step, DescribeCluster | QuorumStep):
        return ours, java
    return _drop("host", "port")(ours), _drop("host", "port")(java)


def _drop_progress(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    """The logs are equal in their records, but not in their batches and the records of each one's start."""
    if not isinstance(asked.step, DescribeQuorum):
        return ours, java
    drop = _drop("highWatermark", "logEndOffset", "lastFetchTimestamp", "lastCaughtUpTimestamp")
    return drop(ours), drop(java)


def _at_one_time(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    records = at_our_times(list(ours.records), list(java.records))
    return ours, Outcome(at_our_times(ours.answer, java.answer), tuple(records))


def _drop_unanswered(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    if not isinstance(asked.step, DescribeScram | DescribeTokens) or not java.has_failed:
        return ours, java
    return ours, Outcome(ours.answer, java.records)


def _drop_lost_errors(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    if not isinstance(asked.step, FetchSnapshot) or codes_in(java.answer) != [ErrorCode.UNKNOWN_SERVER_ERROR]:
        return ours, java
    partitions = [each for topic in ours.answer["topics"] for each in topic["partitions"]]
    all_failed = partitions and all(each["errorCode"] for each in partitions)
    return (Outcome(java.answer, ours.records), java) if all_failed else (ours, java)


def _drop_order_of_refusals(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    step = asked.step
    if not isinstance(step, DeleteTopics) or step.timeout_ms > 0 or asked.deletes_topics:
        return ours, java
    disabled = {int(ErrorCode.TOPIC_DELETION_DISABLED)}, {int(ErrorCode.INVALID_REQUEST)}
    are_both_refused = (
        set(codes_in(ours.answer)) == {ErrorCode.REQUEST_TIMED_OUT} and set(codes_in(java.answer)) in disabled
    )
    return (Outcome(java.answer, ours.records), java) if are_both_refused else (ours, java)


def _drop_placement(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    if not isinstance(asked.step, CreateTopics) or not asked.step.is_placed_by_chance:
        return ours, java
    inactive = asked.fenced | asked.stopping

    def change(outcome: Outcome) -> Outcome:
        return Outcome(outcome.answer, tuple(_placed(record, inactive) for record in outcome.records))

    return change(ours), change(java)


def _placed(record: Form, inactive: frozenset[int]) -> Form:
    """Keep how many replicas there are, and whether those that are active are in sync and the first leads."""
    data = record["data"]
    if "replicas" not in data:
        return record
    active = [replica for replica in data["replicas"] if replica not in inactive]
    placed = {
        "replicas": len(set(data["replicas"])),
        "isr": "the active ones" if data["isr"] == active else data["isr"],
        "leader": "the first of them" if active[:1] == [data["leader"]] else data["leader"],
        "directories": len(data.get("directories", ())),
    }
    return {**record, "data": {**data, **placed}}


def _drop_own_registration(outcome: Outcome) -> Outcome:
    kept = (
        record
        for record in outcome.records
        if record["name"] != "RegisterControllerRecord" or record["data"]["controllerId"] != CONTROLLER_ID
    )
    return Outcome(outcome.answer, tuple(kept))


def _drop_ids_of_nothing(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    if not isinstance(asked.step, CreateTopics) or not asked.step.validate_only:
        return ours, java
    return _drop("topicId")(ours), _drop("topicId")(java)


def _drop_second_fencing(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    step = asked.step
    if not isinstance(step, Beat) or not step.stop or step.broker not in asked.fenced:
        return ours, java
    kept = (each for each in java.records if not _fences(each, step.broker))
    return ours, Outcome(java.answer, tuple(kept))


def _fences(record: Form, broker: int) -> bool:
    data = record["data"]
    is_change = record["name"] == "BrokerRegistrationChangeRecord" and data["brokerId"] == broker
    return is_change and bool(data.get("fenced") == FENCE)


def _drop_own_keys(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    if not isinstance(asked.step, DescribeConfigs):
        return ours, java
    results = [
        {**result, "configs": [each for each in result["configs"] if not each["name"].startswith(PREFIX)]}
        for result in ours.answer["results"]
    ]
    return Outcome({**ours.answer, "results": results}, ours.records), java


ONLY_OURS: Final = frozenset({0, 2, 3, 10003, 10004})
_ONLY_JAVAS: Final = frozenset({17, 29, 30, 31, 36})


def _drop_other_apis(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    if not isinstance(asked.step, ApiVersions):
        return ours, java
    return _without_apis(ours, ONLY_OURS), _without_apis(java, _ONLY_JAVAS)


def _without_apis(outcome: Outcome, dropped: Container[int]) -> Outcome:
    keys = [each for each in outcome.answer["apiKeys"] if each["apiKey"] not in dropped]
    return Outcome({**outcome.answer, "apiKeys": keys}, outcome.records)


RULES: Final = (
    Rule("texts", "error messages are ours", _on_both(_drop("errorMessage", "topicConfigErrorMessage"))),
    Rule("documentation", "the texts about keys are ours", _on_both(_hide("documentation", _has_a_text))),
    Rule("folders", "each has its own folder and addresses", _on_both(_hide("value", _is_of_this_node))),
    Rule("addresses", "each has its own address", _drop_own_address),
    Rule("registration", "each registers itself in its own time", _on_both(_drop_own_registration)),
    Rule(
        "other APIs",
        "ours serves consumers, and has APIs of its own; it has no SASL and no ACLs yet",
        _drop_other_apis,
    ),
    Rule("throttling", "both sides run at their own pace", _on_both(_drop("throttleTimeMs"))),
    Rule("times", "times that are less than a minute apart are equal", _at_one_time),
    Rule("progress", "the logs began with different batches", _drop_progress),
    Rule("unanswered", "Java's controller advertises two APIs and fails in them", _drop_unanswered),
    Rule(
        "lost errors",
        "Java's controller fails to encode a FetchSnapshot response that has an error",
        _drop_lost_errors,
    ),
    Rule(
        "two refusals",
        "if its deadline is over and delete.topic.enable is false, ours looks at the deadline first",
        _drop_order_of_refusals,
    ),
    Rule("placement", "replicas that the controller places are chance", _drop_placement),
    Rule("keys of ours", "Java has none of our keys", _drop_own_keys),
    Rule(
        "epoch of features",
        "ours is an offset, Java's the end of a batch",
        _on_both(_drop("finalizedFeaturesEpoch")),
    ),
    Rule(
        "fenced again",
        "Java fences a fenced broker once more when it stops, which changes nothing",
        _drop_second_fencing,
    ),
    Rule("ids", "the id of a topic that is only validated is chance", _drop_ids_of_nothing),
    Rule("order of answers", "clients look items up; Java's order is that of its hash maps", _on_both(_sort)),
    Rule(
        "order of records",
        "records of one type about different things may come in the order of Java's hash maps",
        _on_both(_sort_records),
    ),
)
"""In the order in which they are applied."""


def compared(asked: Asked, ours: Outcome, java: Outcome) -> Both:
    """Return both outcomes as the rules leave them."""
    for rule in RULES:
        ours, java = rule.apply(asked, ours, java)
    return ours, java
