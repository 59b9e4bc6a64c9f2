"""Copy structures between classes whose fields have the same names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def alike(cls: type[S], source: msgspec.Struct, **others: object) -> S:
    """Return a ``cls`` with the fields of ``source`` that it has, too, and with ``others``.

    Tagged fields that nobody knows are not passed on.
    """
    names = (set(cls.__struct_fields__) & set(source.__struct_fields__)) - {"unknown_tagged_fields"}
    return cls(**{name: getattr(source, name) for name in names - others.keys()}, **others)


def all_alike(cls: type[S], sources: Iterable[msgspec.Struct]) -> list[S]:
    """Return ``alike`` of each."""
    return [alike(cls, source) for source in sources]
