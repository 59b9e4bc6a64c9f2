"""The differences between Java's controller and ours that may be, each with its reason.

A rule changes a step's outcome on both sides so that what it allows looks equal. Anything that still differs
is a difference without an explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, NamedTuple

import msgspec

from compat.judges.behaviour.forms import (
    Form,
    codes_in,
    in_one_order,
    text_of_form,
    with_each_object,
    without,
)
from compat.judges.behaviour.known import CONTROLLER_ID
from compat.judges.behaviour.quorum_steps import DescribeQuorum, FetchSnapshot, QuorumStep
from compat.judges.behaviour.steps import (
    AnyStep,
    ApiVersions,
    Beat,
    CreateTopics,
    DeleteTopics,
    DescribeCluster,
    DescribeConfigs,
    DescribeScram,
    DescribeTokens,
)
from kraft_wire.configs.own_keys import PREFIX
from kraft_wire.protocol.errors import ErrorCode


class Outcome(msgspec.Struct, frozen=True):
    """What a step has done on one side: the answer, and the records that were written for it."""

    answer: Form
    records: tuple[Form, ...] = ()


class Rule(NamedTuple):
    """A difference that may be. ``apply`` gets the step, our outcome and Java's."""

    name: str
    reason: str
    apply: Callable[[AnyStep, Outcome, Outcome], tuple[Outcome, Outcome]]


def _on_both(
    change: Callable[[Outcome], Outcome],
) -> Callable[[AnyStep, Outcome, Outcome], tuple[Outcome, Outcome]]:
    return lambda step, ours, java: (change(ours), change(java))


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
    return Outcome(outcome.answer, tuple(sorted(outcome.records, key=_subject)))


def _subject(record: Form) -> str:
    """Return what a record is about: records about one subject keep their order."""
    data = record["data"]
    subject = {
        key: data[key]
        for key in (
            "topicId",
            "partitionId",
            "resourceType",
            "resourceName",
            "name",
            "brokerId",
            "entity",
            "key",
        )
        if key in data and not isinstance(data[key], float)
    }
    return text_of_form(subject)


_OWN_KEYS: Final = frozenset(
    {
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "delegation.token.secret.key",
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


def _drop_own_address(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    if not isinstance(step, DescribeCluster | QuorumStep):
        return ours, java
    return _drop("host", "port")(ours), _drop("host", "port")(java)


def _drop_progress(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    """The logs are equal in their records, but not in their batches and the records of each one's start."""
    if not isinstance(step, DescribeQuorum):
        return ours, java
    drop = _drop("highWatermark", "logEndOffset", "lastFetchTimestamp", "lastCaughtUpTimestamp")
    return drop(ours), drop(java)


def _drop_unanswered(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    is_unanswered = isinstance(step, DescribeScram | DescribeTokens)
    return (ours, Outcome(ours.answer)) if is_unanswered and not java.records else (ours, java)


def _drop_lost_errors(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    if not isinstance(step, FetchSnapshot) or codes_in(java.answer) != [ErrorCode.UNKNOWN_SERVER_ERROR]:
        return ours, java
    partitions = [each for topic in ours.answer["topics"] for each in topic["partitions"]]
    all_failed = partitions and all(each["errorCode"] for each in partitions)
    return (Outcome(java.answer, ours.records), java) if all_failed else (ours, java)


def _drop_order_of_refusals(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    if not isinstance(step, DeleteTopics) or set(codes_in(ours.answer)) != {ErrorCode.REQUEST_TIMED_OUT}:
        return ours, java
    disabled = {int(ErrorCode.TOPIC_DELETION_DISABLED)}, {int(ErrorCode.INVALID_REQUEST)}
    return (java, java) if set(codes_in(java.answer)) in disabled else (ours, java)


def _drop_placement(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    if not isinstance(step, CreateTopics) or not step.is_placed_by_chance:
        return ours, java
    return _without_brokers(ours), _without_brokers(java)


def _without_brokers(outcome: Outcome) -> Outcome:
    """Keep how many brokers there are, and whether the first replica leads."""
    return Outcome(outcome.answer, tuple(map(_counted, outcome.records)))


def _counted(record: Form) -> Form:
    data = record["data"]
    if "replicas" not in data:
        return record
    counts = {
        "replicas": len(set(data["replicas"])),
        "isr": len(set(data["isr"])),
        "leader": data["leader"] == data["isr"][0],
        "directories": len(data.get("directories", ())),
    }
    return {**record, "data": {**data, **counts}}


def _drop_own_registration(outcome: Outcome) -> Outcome:
    kept = (
        record
        for record in outcome.records
        if record["name"] != "RegisterControllerRecord" or record["data"]["controllerId"] != CONTROLLER_ID
    )
    return Outcome(outcome.answer, tuple(kept))


def _drop_ids_of_nothing(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    if not isinstance(step, CreateTopics) or not step.validate_only:
        return ours, java
    return _drop("topicId")(ours), _drop("topicId")(java)


def _drop_second_fencing(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    if not isinstance(step, Beat) or not step.stop or not java.answer.get("shouldShutDown"):
        return ours, java
    kept = (each for each in java.records if each["data"].get("fenced") != 1 or each in ours.records)
    return ours, Outcome(java.answer, tuple(kept))


def _drop_own_keys(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    if not isinstance(step, DescribeConfigs):
        return ours, java
    results = [
        {**result, "configs": [each for each in result["configs"] if not each["name"].startswith(PREFIX)]}
        for result in ours.answer["results"]
    ]
    return Outcome({**ours.answer, "results": results}, ours.records), java


ONLY_OURS: Final = frozenset({0, 2, 3, 10003, 10004})
_ONLY_JAVAS: Final = frozenset({17, 29, 30, 31, 36})


def _drop_other_apis(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    if not isinstance(step, ApiVersions):
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
    Rule(
        "times",
        "both sides run at their own pace",
        _on_both(
            _drop(
                "throttleTimeMs",
                "issueTimestampMs",
                "expiryTimestampMs",
                "maxTimestampMs",
                "issueTimestamp",
                "expirationTimestamp",
                "maxTimestamp",
            )
        ),
    ),
    Rule(
        "secrets",
        "tokens' ids are chance, and their HMACs follow from them",
        _on_both(_drop("tokenId", "hmac")),
    ),
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
        "records about different things may come in any order; Java's is that of its hash maps",
        _on_both(_sort_records),
    ),
)
"""In the order in which they are applied."""


def compared(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    """Return both outcomes as the rules leave them."""
    for rule in RULES:
        ours, java = rule.apply(step, ours, java)
    return ours, java
