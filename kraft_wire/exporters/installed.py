"""Find the kinds of sinks that other installed packages bring along, as entry points.

The group is ``kraft_wire.exporters``. The name of an entry point is the value of the key ``type``, and its
object is a ``SinkKind``.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Final, NamedTuple

from kraft_wire.exporters.kinds import KINDS, SinkKind

GROUP: Final = "kraft_wire.exporters"


class FoundKinds(NamedTuple):
    """The kinds by the value of ``type``, and what is wrong with others."""

    kinds: dict[str, SinkKind]
    problems: tuple[str, ...]


def find_kinds(types: Collection[str]) -> FoundKinds:
    """Return all kinds of this package, and those of these types that other packages have. Packages are only
    looked through for a type that isn't ours, which takes some milliseconds."""
    kinds, problems = dict(KINDS), []
    wanted = set(types) - KINDS.keys()
    if wanted:
        for point in entry_points(group=GROUP):
            if point.name in wanted:
                try:
                    kinds[point.name] = _load(point)
                except Exception as error:  # noqa: BLE001 - it is the code of somebody else
                    problems.append(f"{_words(point)} can't be loaded: {type(error).__name__}: {error}")
    problems += [
        f"an exporter of type {name} needs {kinds[name].needs}, which isn't installed:"
        f" pip install 'kraft-wire[{kinds[name].extra}]'"
        for name in sorted(set(types) & kinds.keys())
        if kinds[name].needs and find_spec(kinds[name].needs) is None
    ]
    return FoundKinds(kinds, tuple(problems))


def kind_of(type_name: str) -> SinkKind:
    """Return a kind that ``find_kinds`` has found before. Raises KeyError, and what its package raises."""
    found = KINDS.get(type_name)
    if found is not None:
        return found
    for point in entry_points(group=GROUP, name=type_name):
        return _load(point)
    raise KeyError(type_name)


def _load(point: EntryPoint) -> SinkKind:
    kind = point.load()
    if not isinstance(kind, SinkKind):
        raise TypeError(f"{point.value} is no SinkKind")
    return kind


def _words(point: EntryPoint) -> str:
    package = "an unknown package" if point.dist is None else point.dist.name
    return f"the exporters' entry point {point.name} = {point.value} of {package}"
