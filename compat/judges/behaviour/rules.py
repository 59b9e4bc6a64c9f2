"""The differences between Java's controller and ours that may be, each with its reason.

A rule changes a step's outcome on both sides so that what it allows looks equal. Anything that still differs
is a difference without an explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, NamedTuple

import msgspec

from compat.judges.behaviour.forms import Form, in_one_order, text_of_form, without
from compat.judges.behaviour.steps import (
    AnyStep,
    ApiVersions,
    Beat,
    CreateTopics,
    DescribeCluster,
    DescribeConfigs,
)
from kraft_wire.configs.own_keys import PREFIX


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


def _without_own_values(form: Form) -> Form:
    if isinstance(form, dict):
        named = form.get("name") in _OWN_KEYS
        return {
            key: "its own" if named and key == "value" else _without_own_values(each)
            for key, each in form.items()
        }
    if isinstance(form, list):
        return [_without_own_values(each) for each in form]
    return form


def _drop_own_values(outcome: Outcome) -> Outcome:
    return Outcome(_without_own_values(outcome.answer), outcome.records)


def _drop_own_address(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    if not isinstance(step, DescribeCluster):
        return ours, java
    return _drop("host", "port")(ours), _drop("host", "port")(java)


def _drop_own_registration(outcome: Outcome) -> Outcome:
    kept = (record for record in outcome.records if record["name"] != "RegisterControllerRecord")
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


_ONLY_OURS: Final = frozenset({0, 2, 3, 10003, 10004})
_ONLY_JAVAS: Final = frozenset({17, 29, 30, 31, 36})


def _drop_other_apis(step: AnyStep, ours: Outcome, java: Outcome) -> tuple[Outcome, Outcome]:
    if not isinstance(step, ApiVersions):
        return ours, java
    return _without_apis(ours, _ONLY_OURS), _without_apis(java, _ONLY_JAVAS)


def _without_apis(outcome: Outcome, dropped: Container[int]) -> Outcome:
    keys = [each for each in outcome.answer["apiKeys"] if each["apiKey"] not in dropped]
    return Outcome({**outcome.answer, "apiKeys": keys}, outcome.records)


RULES: Final = (
    Rule("texts", "error messages are ours", _on_both(_drop("errorMessage", "topicConfigErrorMessage"))),
    Rule("documentation", "Kafka's texts about its keys are Kafka's", _on_both(_drop("documentation"))),
    Rule("folders", "each has its own folder and addresses", _on_both(_drop_own_values)),
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
