"""Definitions in franz-go's language for tests, and the classes that they become."""

from __future__ import annotations

from types import ModuleType

from schema_samples import module_of

from codegen.franz_dsl import parse
from codegen.model import Field, Message

FILE = "sample"
HEADER = "SampleRequest => key 900, max version 5, flexible v3+"


def messages(text: str) -> list[Message]:
    """The checked messages of a file."""
    return list(parse(text, FILE))


def only_message(*fields: str, header: str = HEADER) -> Message:
    """The request with these lines for its fields."""
    (message,) = messages("\n".join([header, *(f"  {field}" for field in fields)]))
    return message


def only_field(*lines: str, header: str = HEADER) -> Field:
    """The one field of the request."""
    (found,) = only_message(*lines, header=header).fields
    return found


def generated(*fields: str, header: str = HEADER) -> ModuleType:
    """The module that the request becomes."""
    return module_of(only_message(*fields, header=header))
