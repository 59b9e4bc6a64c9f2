"""Parse the options of the data source ``kraft``. Spark passes their names in lower case."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from kraft_wire.client.addresses import BOOTSTRAP
from kraft_wire.client.security_options import OPTIONS
from kraft_wire.client.settings import KAFKA, QUORUM_OPTIONS, QuorumSettings, parse_settings
from kraft_wire.logs.positions import Positions, parse_positions
from kraft_wire.security.errors import BadSetting
from kraft_wire.tabular.table_names import CORRUPT, RECORDS, record_class, table_names

if TYPE_CHECKING:
    import pyarrow as pa

    from kraft_wire.columnar.page import Page
    from kraft_wire.logs.places import LogPlace

T = TypeVar("T")

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
SNAPSHOT: Final = "snapshot"
ALL: Final = "all"
COMMITTED: Final = "committed"
FAIL: Final = "fail"
ROW: Final = "row"
_NAMES: Final = (
    "path",
    "paths",
    "table",
    "columns",
    "tail",
    "startingOffsets",
    "endingOffsets",
    "failOnDataLoss",
    "corrupt",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "pushFilters",
)


class BadOption(ValueError):
    """An invalid option. The text says which one, and what is allowed."""


class Options(msgspec.Struct, frozen=True):
    """The parsed options.

    ``paths`` are folders or globs; empty if a ``quorum`` is read. ``table`` is one of ``table_names``;
    ``columns`` are some of its columns, None for all. ``starting_offsets`` is earliest, latest, snapshot, or
    positions; None if it isn't set. ``ending_offsets`` is latest or positions. The limits are those of a
    stream's trigger.
    """

    paths: tuple[str, ...]
    table: str = RECORDS
    columns: tuple[str, ...] | None = None
    tail: str = ALL
    starting_offsets: str | Positions | None = None
    ending_offsets: str | Positions = LATEST
    fail_on_data_loss: bool = True
    corrupt: str = FAIL
    max_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    push_filters: bool = False
    quorum: QuorumSettings | None = None

    @property
    def schema(self) -> pa.Schema:
        """The table's columns, or the chosen ones. Raises BadOption."""
        import pyarrow as pa

        from kraft_wire.tabular.arrow_types import table_schema

        schema = table_schema(self.table)
        unknown = [name for name in self.columns or () if name not in schema.names]
        if unknown:
            raise BadOption(
                f"columns: {self.table} has no {', '.join(unknown)}; it has {', '.join(schema.names)}"
            )
        return schema if self.columns is None else pa.schema([schema.field(name) for name in self.columns])

    def batches_of(
        self, page: Page, place: LogPlace, types: Collection[str] | None = None
    ) -> list[pa.RecordBatch]:
        """Return a page's rows of the table; of ``records`` only those of some types, if types are given."""
        from kraft_wire.tabular.record_tables import record_batches, typed_batches

        if self.table == RECORDS:
            return record_batches(page, place, self.columns, types)
        return typed_batches(page, record_class(self.table), place, self.columns)


def parse_options(options: Mapping[str, str]) -> Options:
    """Parse the options. Raises BadOption."""
    _check_names(options)
    table = options.get("table", RECORDS)
    if table not in table_names():
        raise BadOption(f"table: there is no {table!r}; there are {', '.join(table_names())}")
    columns = options.get("columns")
    parsed = Options(
        paths=() if BOOTSTRAP in options else _paths(options),
        quorum=_quorum(options) if BOOTSTRAP in options else None,
        table=table,
        columns=None if columns is None else tuple(name.strip() for name in columns.split(",")),
        tail=_one_of(options, "tail", (ALL, COMMITTED)),
        starting_offsets=_offsets(options, "startingOffsets", (EARLIEST, LATEST, SNAPSHOT)),
        ending_offsets=_offsets(options, "endingOffsets", (LATEST,)) or LATEST,
        fail_on_data_loss=_parsed(options, "failOnDataLoss", _flag, "true or false", True),
        corrupt=_one_of(options, "corrupt", (ROW,) if table == CORRUPT else (FAIL, ROW)),
        max_offsets_per_trigger=_limit(options, "maxOffsetsPerTrigger"),
        max_bytes_per_trigger=_limit(options, "maxBytesPerTrigger"),
        push_filters=_parsed(options, "pushFilters", _flag, "true or false", False),
    )
    if parsed.max_offsets_per_trigger is not None and parsed.max_bytes_per_trigger is not None:
        raise BadOption("maxOffsetsPerTrigger and maxBytesPerTrigger: give one of them")
    assert parsed.schema is not None, "it checks the columns"
    return parsed


def _check_names(options: Mapping[str, str]) -> None:
    """Reject unknown names: with a misspelt option its default would be used."""
    known = [*_NAMES, *QUORUM_OPTIONS]
    unknown = sorted(options.keys() - {name.lower() for name in known})
    for name in unknown:
        if not name.startswith(KAFKA):
            like = get_close_matches(name, [*known, *(f"{KAFKA}{option}" for option in OPTIONS)], 1, 0.7)
            hint = f" (did you mean {like[0]}?)" if like else ""
            raise BadOption(f"{name}: no such option{hint}; there are {', '.join(known)}, and {KAFKA}*")


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths. Spark passes several paths of ``load`` as ``paths``, in JSON."""
    several: list[str] = _parsed(options, "paths", _texts, 'a JSON list, such as ["/logs/a", "/logs/b*"]', [])
    path = options.get("path")
    paths = (*([path] if path else []), *several)
    if not paths:
        raise BadOption(
            f"path: give a folder with metadata logs in or below it, or a glob; or give {BOOTSTRAP}"
        )
    return paths


def _quorum(options: Mapping[str, str]) -> QuorumSettings:
    if "path" in options or "paths" in options:
        raise BadOption(f"{BOOTSTRAP}: a quorum has no path; call load without one")
    try:
        return parse_settings(options)
    except BadSetting as error:
        raise BadOption(str(error)) from None


def _offsets(options: Mapping[str, str], name: str, words: tuple[str, ...]) -> str | Positions | None:
    what = f'{", ".join(words)}, or JSON such as {{"CLUSTER": {{"epoch": 3, "offset": 107}}}}'
    return _parsed(options, name, lambda text: text if text in words else parse_positions(text), what, None)


def _one_of(options: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    word = options.get(name.lower(), words[0])
    if word not in words:
        raise BadOption(f"{name}: {word!r} is not {' or '.join(words)}")
    return word


def _limit(options: Mapping[str, str], name: str) -> int | None:
    return _parsed(options, name, _positive, "a number above 0", None)


def _parsed(options: Mapping[str, str], name: str, parse: Callable[[str], T], what: str, default: T) -> T:
    text = options.get(name.lower())
    if text is None:
        return default
    try:
        return parse(text)
    except ValueError as error:
        raise BadOption(f"{name}: {text!r} is not {what} ({error})") from None


def _texts(text: str) -> list[str]:
    return msgspec.json.decode(text, type=list[str])


def _flag(text: str) -> bool:
    """Parse true or false, in any case, as Spark's own options."""
    flags = {"true": True, "false": False}
    if text.lower() not in flags:
        raise ValueError("neither")
    return flags[text.lower()]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("below 1")
    return number
