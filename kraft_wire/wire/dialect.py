"""Speak other messages on the wire than those that a node works with.

A ``Form`` is one API as it is on the wire; a ``Dialect`` is all the forms that a listener has. A connection
translates: the node never sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kraft_wire.protocol.message import Message
from kraft_wire.wire.served_versions import ServedVersions


class Form(msgspec.Struct, frozen=True, eq=False):
    """One API on the wire, and its translation to and from ``own_key``, the API that the node knows.

    ``own_versions`` maps each version on the wire to the node's. ``read_*`` make the node's messages of those
    on the wire, ``write_*`` the reverse. ``write_request`` raises UnsupportedVersion for a request that this
    form can't express.
    """

    key: int
    own_key: int
    own_versions: Mapping[int, int]
    request_class: type[Message]
    response_class: type[Message]
    read_request: Callable[[Any, int], Message]
    write_request: Callable[[Any], Message]
    read_response: Callable[[Any], Message]
    write_response: Callable[[Any], Message]

    @property
    def min_version(self) -> int:
        """The first version on the wire."""
        return min(self.own_versions)

    @property
    def max_version(self) -> int:
        """The last version on the wire."""
        return max(self.own_versions)


class Dialect:
    """The forms of a listener. Only its speakers advertise all of ``signs``, which are API keys."""

    def __init__(self, forms: Iterable[Form], signs: Sequence[int]) -> None:
        self._forms = {form.key: form for form in forms}
        self._own = {form.own_key: form for form in self._forms.values()}
        self._signs = signs

    def is_spoken_by(self, served: ServedVersions) -> bool:
        """Whether a peer speaks it, by the APIs that it serves."""
        return all(served.serves(key) for key in self._signs)

    def form(self, key: int) -> Form | None:
        """Return the form that has this key on the wire; None if the API is as the node knows it."""
        return self._forms.get(key)

    def form_of(self, own_key: int) -> Form | None:
        """Return the form of an API that the node knows; None if it has none of its own."""
        return self._own.get(own_key)

    def is_served(self, key: int, version: int) -> bool:
        """Whether this key and version are served here. An API that has another key here isn't served under
        its own."""
        form = self._forms.get(key)
        if form is not None:
            return version in form.own_versions
        return key not in self._own

    def own_key(self, key: int) -> int:
        """Return the node's key of the API that has this key on the wire."""
        form = self._forms.get(key)
        return key if form is None else form.own_key
