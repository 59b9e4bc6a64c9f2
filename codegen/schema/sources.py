"""Read the schemas of a folder: find the files, and choose the front end that reads them.

To add a language, add its FrontEnd to FRONT_ENDS.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codegen.franz import dsl
from codegen.schema.check import check
from codegen.schema.errors import SchemaError
from codegen.schema.kafka_json import parse
from codegen.schema.model import Message


@dataclass(frozen=True, slots=True)
class Source:
    """A message and the name of the file that defines it."""

    file: str
    message: Message


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A language of schemas: ``claims`` recognises its files by their names, ``read`` parses all of a
    folder's."""

    name: str
    claims: Callable[[Path], bool]
    read: Callable[[Sequence[Path]], Iterable[Source]]


def read_schemas(folder: Path) -> list[Source]:
    """Parse and check every schema of a folder, in the order of the messages' names. Raises SchemaError."""
    if not folder.is_dir():
        raise SchemaError(str(folder), "there is no such folder of schemas")
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    claimed = {each.name: [path for path in paths if each.claims(path)] for each in FRONT_ENDS}
    languages = [each for each in FRONT_ENDS if claimed[each.name]]
    if not languages:
        raise SchemaError(str(folder), "there is no schema; import one first")
    if len(languages) > 1:
        names = ", ".join(f"{claimed[each.name][0].name} ({each.name})" for each in languages)
        raise SchemaError(str(folder), f"its files are written in several languages: {names}")
    found: dict[str, Source] = {}
    for source in languages[0].read(claimed[languages[0].name]):
        name = source.message.name
        if name in found:
            raise SchemaError(source.file, f"message {name} is in {found[name].file} as well")
        check(source.message)
        found[name] = source
    if not found:
        raise SchemaError(str(folder), "its files hold no message")
    return [found[name] for name in sorted(found)]


def _read_kafka_json(paths: Sequence[Path]) -> Iterator[Source]:
    for path in paths:
        message = parse(_text(path), path.name)
        if message.name != path.stem:
            raise SchemaError(path.name, f"holds message {message.name}; call it {message.name}.json")
        yield Source(path.name, message)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(str(path), f"can't be read: {error}") from error


KAFKA_JSON = FrontEnd("Kafka's JSON", lambda path: path.suffix == ".json", _read_kafka_json)
FRANZ = FrontEnd(
    "franz-go's definitions",
    dsl.is_definition,
    lambda paths: itertools.starmap(Source, dsl.read(paths)),
)
FRONT_ENDS: tuple[FrontEnd, ...] = (KAFKA_JSON, FRANZ)
