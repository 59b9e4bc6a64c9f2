"""The front end for franz-go's definition language (twmb/franz-go, ``generate/``): requests and responses.

``lines`` splits a file into lines, ``types`` and ``definitions`` read the definitions, ``build`` makes
messages of them. ``schemas/franz/README.md`` describes the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from codegen.franz.build import Builder
from codegen.franz.definitions import Definition, Definitions
from codegen.schema.check import check
from codegen.schema.errors import SchemaError
from codegen.schema.model import Message

ENUMS = "enums"
"""The file of a folder that is read first."""
_FILE_NAME = re.compile(r"[a-z0-9_]+")


def is_definition(path: Path) -> bool:
    """Whether a file is a definition, by its name: as in franz-go, small letters and no suffix."""
    return _FILE_NAME.fullmatch(path.name) is not None


def read(paths: Iterable[Path]) -> Iterator[tuple[str, Message]]:
    """Return the messages of several files, each with its file's name: ``enums`` first, then by name.

    Raises SchemaError, which names file and line.
    """
    definitions = Definitions()
    for path in sorted(paths, key=lambda path: (path.name != ENUMS, path.name)):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SchemaError(path.name, f"can't be read: {error}") from error
        for message in parse(text, path.name, definitions):
            yield path.name, message


def parse(text: str, file: str, definitions: Definitions | None = None) -> Iterator[Message]:
    """Return the checked messages of one file, which errors call ``file``. ``definitions`` holds the earlier
    ones."""
    definitions = definitions or Definitions()
    for definition in definitions.read(text, file):
        yield _checked(definition, definitions)


def _checked(definition: Definition, definitions: Definitions) -> Message:
    builder = Builder(definition, definitions)
    message = builder.message()
    try:
        check(message)
    except SchemaError as error:
        # check.py knows paths only; the path of the first problem gives the line.
        path = error.problems[0].partition(":")[0]
        line = builder.lines.get(path, definition.line)
        raise SchemaError(f"{line.file}:{line.number}", error.problems) from None
    return message
