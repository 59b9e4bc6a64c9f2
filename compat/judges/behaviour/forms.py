"""Give answers and records a form in which equal behaviour looks equal.

Ids and epochs that each side makes for itself are replaced by what they belong to. What is left of the
differences that may be is in ``rules``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from compat.judges.behaviour.known import Known
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.wire.headers import decode_response

Form = Any
"""What JSON can express."""

EPOCH_FIELDS: Final = frozenset({"brokerEpoch", "previousBrokerEpoch"})
PRODUCER_FIELDS: Final = frozenset({"producerIdStart", "nextProducerId"})


def form_of(message: Message, version: int, known: Known) -> Form:
    """Return a message as JSON, in names instead of ids."""
    return _named(message.to_json(version), known)


def _named(value: Form, known: Known, field: str = "") -> Form:
    if isinstance(value, dict):
        return {key: _named(each, known, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_named(each, known, field) for each in value]
    if isinstance(value, str):
        return known.names.get(value, value)
    if field in EPOCH_FIELDS:
        return known.epoch_names.get(value, value)
    return value


def opened(response: Message, version: int, inner: tuple[int, int]) -> tuple[Message, int]:
    """Return the response that an Envelope has inside, and its version; any other response as it is.

    ``inner`` are the API and the version of the request inside.
    """
    if not isinstance(response, EnvelopeResponse) or response.response_data is None:
        return response, version
    _, message = decode_response(*inner, response.response_data)
    return message, inner[1]


def with_each_object(form: Form, change: Callable[[Form], Form]) -> Form:
    """Change each object in a form, the inner ones first."""
    if isinstance(form, dict):
        return change({key: with_each_object(each, change) for key, each in form.items()})
    if isinstance(form, list):
        return [with_each_object(each, change) for each in form]
    return form


def in_one_order(form: Form) -> Form:
    """Sort all lists of objects: their order has no meaning."""
    if isinstance(form, dict):
        return {key: in_one_order(each) for key, each in form.items()}
    if isinstance(form, list):
        items = [in_one_order(each) for each in form]
        return sorted(items, key=text_of_form) if any(isinstance(each, dict) for each in items) else items
    return form


def without(form: Form, is_dropped: Callable[[str], bool]) -> Form:
    """Leave out the fields of these names, at any depth."""
    if isinstance(form, dict):
        return {key: without(each, is_dropped) for key, each in form.items() if not is_dropped(key)}
    if isinstance(form, list):
        return [without(each, is_dropped) for each in form]
    return form


def text_of_form(form: Form) -> str:
    """Return a form as text, for comparisons."""
    return json.dumps(form, sort_keys=True)


def codes_in(form: Form) -> list[int]:
    """Return the error codes of an answer: all of its ``errorCode`` and ``topicConfigErrorCode`` fields.

    The second is a tagged field: it is there only if it isn't 0.
    """
    if isinstance(form, dict):
        own = [each for key, each in form.items() if key in ("errorCode", "topicConfigErrorCode")]
        return own + [code for each in form.values() for code in codes_in(each)]
    if isinstance(form, list):
        return [code for each in form for code in codes_in(each)]
    return []


def differences(ours: Form, java: Form, path: str = "") -> list[str]:
    """Return where two forms differ, and how."""
    if isinstance(ours, dict) and isinstance(java, dict) and ours.keys() == java.keys():
        return [line for key in ours for line in differences(ours[key], java[key], f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(java, list) and len(ours) == len(java):
        pairs = enumerate(zip(ours, java, strict=True))
        return [line for place, pair in pairs for line in differences(*pair, f"{path}[{place}]")]
    if isinstance(ours, list) and isinstance(java, list):
        left, right = (list(map(text_of_form, side)) for side in (ours, java))
        return [
            *(f"{path} only ours: {each}" for each in left if each not in right),
            *(f"{path} only Java's: {each}" for each in right if each not in left),
        ]
    return [] if ours == java else [f"{path}: ours {text_of_form(ours)}, Java's {text_of_form(java)}"]
