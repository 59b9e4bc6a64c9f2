"""Messages as they arrive on the other side: encoded and decoded, in Kafka's form or in that of a dialect."""

from __future__ import annotations

from kraft_wire.protocol.message import Message
from kraft_wire.wire.dialect import Dialect


def carried_request(request: Message, version: int, dialect: Dialect | None) -> tuple[Message, int]:
    """Return the request as the other side knows it, with its version there.

    Raises UnsupportedVersion for a request that the dialect can't express.
    """
    form = None if dialect is None else dialect.form_of(request.API_KEY)
    if form is None:
        return type(request).decode(request.encode(version), version), version
    raw = form.write_request(request).encode(form.max_version)
    read = form.read_request(form.request_class.decode(raw, form.max_version), form.max_version)
    return read, form.own_versions[form.max_version]


def carried_response(response: Message, dialect: Dialect | None) -> Message:
    """Return the response as the other side knows it. In Kafka's form it is taken as it is."""
    form = None if dialect is None else dialect.form_of(response.API_KEY)
    if form is None:
        return response
    raw = form.write_response(response).encode(form.max_version)
    return form.read_response(form.response_class.decode(raw, form.max_version))
