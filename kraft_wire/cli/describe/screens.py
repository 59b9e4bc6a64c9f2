"""The screens by name, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final

import msgspec

from kraft_wire.cli.describe.brokers import broker_rows
from kraft_wire.cli.describe.configs import config_rows
from kraft_wire.cli.describe.features import feature_rows
from kraft_wire.cli.describe.overview import overview_lines, overview_of
from kraft_wire.cli.describe.quorum import controller_rows
from kraft_wire.cli.describe.reassignments import reassignment_rows
from kraft_wire.cli.describe.table import table
from kraft_wire.cli.describe.topics import partition_rows, topic_rows
from kraft_wire.logs.metadata_at import UNKNOWN, MetadataThen

TOPICS: Final = "topics"
QUORUM: Final = "quorum"
SCREENS: Final[Mapping[str, Callable[[MetadataThen], Sequence[msgspec.Struct]]]] = {
    "brokers": broker_rows,
    TOPICS: topic_rows,
    "configs": config_rows,
    QUORUM: controller_rows,
    "features": feature_rows,
    "reassignments": reassignment_rows,
}


def text_of(then: MetadataThen, screen: str | None, names: Sequence[str]) -> Iterator[str]:
    """Return the lines of a screen. Raises CommandError for a name that isn't there."""
    if screen is None:
        return chain(_head(then), overview_lines(then))
    rows = _rows(then, screen, names)
    nothing = "controllers" if screen == QUORUM else screen
    return chain(_head(then), [""], table(rows) if rows else [f"No {nothing}."])


def _head(then: MetadataThen) -> Iterator[str]:
    yield f"Cluster           {then.cluster_id}"
    yield f"As of             {_moment_text(then)}"
    if then.state.transaction_start is not None:
        yield f"Open transaction  since offset {then.state.transaction_start}: its changes may be undone"


def json_of(then: MetadataThen, screen: str | None, names: Sequence[str]) -> bytes:
    """Return one JSON object. Raises CommandError for a name that isn't there."""
    shown = {"overview": overview_of(then)} if screen is None else {screen: _rows(then, screen, names)}
    head: dict[str, Any] = {
        "cluster_id": then.cluster_id,
        "offset": _known(then.offset),
        "epoch": _known(then.epoch),
        "time_ms": _known(then.time_ms),
        "committed": not then.may_be_uncommitted,
        "open_transaction_start": then.state.transaction_start,
    }
    return msgspec.json.format(msgspec.json.encode({**head, **shown}), indent=2)


def _rows(then: MetadataThen, screen: str, names: Sequence[str]) -> Sequence[msgspec.Struct]:
    return partition_rows(then, list(dict.fromkeys(names))) if names else SCREENS[screen](then)


def _moment_text(then: MetadataThen) -> str:
    if then.offset == UNKNOWN:
        return "the beginning: the log is empty"
    when = "" if then.time_ms == UNKNOWN else f", {_time_text(then.time_ms)}"
    doubt = ", which may not be committed" if then.may_be_uncommitted else ""
    return f"offset {then.offset}, epoch {then.epoch}{when}{doubt}"


def _time_text(time_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # no controller writes such a time
        return f"{time_ms} ms after 1970"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number
