"""Carry messages between simulated nodes: as they are, encoded and decoded, or in the form of a dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraft_wire.protocol.errors import UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.wire.dialect import Dialect, Form

VERSIONS: Final[Mapping[int, int]] = {
    1: 18, 18: 4, 52: 2, 53: 1, 54: 1, 55: 2, 59: 1, 70: 0, 80: 1, 81: 0, 82: 0, 10004: 0,
}  # fmt: skip


class Wire:
    """The messages between nodes. With ``is_encoded`` they become bytes on their way; those that have a form
    in the ``dialect`` always do."""

    def __init__(self, *, is_encoded: bool, dialect: Dialect | None = None) -> None:
        self._is_encoded = is_encoded
        self._dialect = dialect

    def can_carry(self, request: Message) -> bool:
        """Whether the request can be expressed."""
        form = self._form_of(request)
        if form is None:
            return True
        try:
            form.write_request(request)
        except UnsupportedVersion:
            return False
        return True

    def request(self, request: Message) -> tuple[Message, int]:
        """Return the request as the other side knows it, with its version there."""
        version, form = VERSIONS[request.API_KEY], self._form_of(request)
        if form is not None:
            raw = form.write_request(request).encode(form.max_version)
            read = form.read_request(form.request_class.decode(raw, form.max_version), form.max_version)
            return read, form.own_versions[form.max_version]
        if self._is_encoded:
            request = type(request).decode(request.encode(version), version)
        return request, version

    def response(self, response: Message) -> Message:
        """Return the response as the other side knows it."""
        version, form = VERSIONS[response.API_KEY], self._form_of(response)
        if form is not None:
            raw = form.write_response(response).encode(form.max_version)
            return form.read_response(form.response_class.decode(raw, form.max_version))
        return type(response).decode(response.encode(version), version) if self._is_encoded else response

    def _form_of(self, message: Message) -> Form | None:
        return None if self._dialect is None else self._dialect.form_of(message.API_KEY)
