"""Make the response that says that all of a request failed, for every API (AbstractRequest.getErrorResponse).

Most responses have one error at the top. In others there is one error for each item that was requested:
``ErrorForm`` says which. Fields that a response does not have in a version are left out, as the schema says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, islice
from typing import Any, Final

import msgspec

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Field, Structure


class ItemErrors(msgspec.Struct, frozen=True):
    """One error for each requested item.

    The items of the request's array ``asked`` are answered in the response's array ``answered``, after those
    of another array that are answered there, too. ``keys`` are the fields that say which item it is;
    ``renamed`` has those that have another name in the response. An item that is a plain value goes into the
    one key. ``nested`` are the items inside an item. ``constants`` are fields that an error sets to something
    other than their default.
    """

    asked: str
    answered: str
    keys: tuple[str, ...]
    nested: ItemErrors | None = None
    constants: Mapping[str, int] = {}
    renamed: Mapping[str, str] = {}


class ErrorForm(msgspec.Struct, frozen=True):
    """The places that a response has for errors, besides ``error_code`` at its top.

    Of ``items`` those count whose array the request has in its version. With UNSUPPORTED_VERSION the array
    ``own_versions`` lists the versions of the API itself (KIP-511).
    """

    items: tuple[ItemErrors, ...] = ()
    own_versions: str = ""


TOP_LEVEL: Final = ErrorForm()
"""One error at the top."""


def failed_response(
    response_class: type[Message],
    request: Message,
    version: int,
    code: ErrorCode,
    message: str,
    *,
    form: ErrorForm,
    own: tuple[int, int, int],
    most_items: int | None = None,
) -> Message:
    """Return the response that says that all of ``request`` failed with ``code``.

    The message goes where the response has a place for it; an empty one is null. ``own`` are the API's key,
    its first and its last version. ``most_items`` are named at most; None is all.
    """
    response = response_class(**_error_fields(response_class, version, code, message))
    for items in form.items:
        if _field(type(request), items.asked).is_present(version):
            failed = _failed_items(response_class, request, items, version, code, message)
            answers = chain(getattr(response, items.answered), failed)
            setattr(response, items.answered, list(islice(answers, most_items)))
    if form.own_versions and code is ErrorCode.UNSUPPORTED_VERSION:
        setattr(response, form.own_versions, [_item_class(response_class, form.own_versions)(*own)])
    return response


def _failed_items(
    response_class: type[Structure],
    request: Structure,
    items: ItemErrors,
    version: int,
    code: ErrorCode,
    message: str,
) -> Iterator[Structure]:
    item_class = _item_class(response_class, items.answered)
    for asked in getattr(request, items.asked) or ():
        keys = _keys_of(asked, items)
        if not _has_form(item_class, keys, version):
            continue
        item = item_class(**keys, **_error_fields(item_class, version, code, message), **items.constants)
        if items.nested is not None:
            nested = _failed_items(item_class, asked, items.nested, version, code, message)
            setattr(item, items.nested.answered, list(nested))
        yield item


def _keys_of(asked: object, items: ItemErrors) -> dict[str, object]:
    """Return the fields of the response that say which item it is."""
    if isinstance(asked, Structure):
        return {items.renamed.get(key, key): getattr(asked, key) for key in items.keys}
    (key,) = items.keys
    return {key: asked}


def _has_form(item_class: type[Structure], keys: Mapping[str, object], version: int) -> bool:
    """Whether the version can say which item it is: some have no null names."""
    return all(
        value is not None or _field(item_class, name).is_nullable(version) for name, value in keys.items()
    )


def _error_fields(cls: type[Structure], version: int, code: ErrorCode, message: str) -> dict[str, Any]:
    """Return the values of ``error_code`` and ``error_message``, as far as the class has them."""
    values = {"error_code": int(code), "error_message": message or None}
    fields = _fields(cls)
    return {
        name: value for name, value in values.items() if name in fields and fields[name].is_present(version)
    }


def _item_class(cls: type[Structure], array: str) -> type[Structure]:
    item_class = _field(cls, array).struct
    if item_class is None:
        raise LookupError(f"{cls.__name__}.{array} is not an array of structures")
    return item_class


def _field(cls: type[Structure], name: str) -> Field:
    return _fields(cls)[name]


@cache
def _fields(cls: type[Structure]) -> Mapping[str, Field]:
    return {field.name: field for field in cls.FIELDS}
