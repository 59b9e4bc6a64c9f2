"""Look up generated classes by key or name. They are imported when they are first requested."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from kraft_wire.protocol import own_messages
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import (
    COORDINATOR_RECORDS,
    LISTENERS,
    METADATA_RECORDS,
    MODULES,
    REQUESTS,
    RESPONSES,
    UNSTABLE_LATEST,
)

API_KEYS: Final = tuple(REQUESTS)
"""Kafka's API keys, ascending, including APIs that have no version left."""
OWN_API_KEYS: Final = tuple(own_messages.REQUESTS)
"""The keys of APIs that only kraft-wire has (``schemas/kraft-wire``)."""
_REQUESTS: Final = REQUESTS | own_messages.REQUESTS
_RESPONSES: Final = RESPONSES | own_messages.RESPONSES
METADATA_RECORD_KEYS: Final = tuple(METADATA_RECORDS)
"""Every id of a record of __cluster_metadata, ascending."""


@cache
def message_class(name: str) -> type[Message]:
    """Return the class of a message by its schema's name. Raises KeyError for an unknown one."""
    own = own_messages.MODULES.get(name)
    path = f"messages.{MODULES[name]}" if own is None else f"own_messages.{own}"
    module = import_module(f"kraft_wire.protocol.{path}")
    found: type[Message] = getattr(module, name)
    return found


@cache
def request_class(api_key: int) -> type[Message]:
    """Return the request of an API. Raises KeyError for an unknown one."""
    return message_class(_REQUESTS[api_key])


@cache
def response_class(api_key: int) -> type[Message]:
    """Return the response of an API. Raises KeyError for an unknown one."""
    return message_class(_RESPONSES[api_key])


@cache
def metadata_record_class(record_key: int) -> type[Message]:
    """Return a record of __cluster_metadata by its id. Raises KeyError for an unknown one."""
    return message_class(METADATA_RECORDS[record_key])


@cache
def coordinator_record_classes(coordinator: str, record_type: int) -> tuple[type[Message], type[Message]]:
    """Return the key and the value of a coordinator's record by its type. Raises KeyError for an unknown one.

    ``coordinator`` is "group", "share" or "transaction".
    """
    key, value = COORDINATOR_RECORDS[coordinator][record_type]
    return message_class(key), message_class(value)


def api_name(api_key: int) -> str:
    """Return an API's name as Kafka logs it ("CreateTopics"), or ours. Raises KeyError for an unknown one."""
    return _REQUESTS[api_key].removesuffix("Request")


def api_listeners(api_key: int) -> tuple[str, ...]:
    """Return who serves an API: "broker", "controller", both or none. Raises KeyError for an unknown one."""
    return LISTENERS[api_key]


def stable_versions(api_key: int) -> tuple[int, int]:
    """Return the first and last version of an API that may be advertised; the last is below the first if none
    may.

    A latest version that its schema calls unstable is left out, as with unstable.api.versions.enable=false.
    """
    request = request_class(api_key)
    return request.MIN_VERSION, request.MAX_VERSION - (api_key in UNSTABLE_LATEST)
