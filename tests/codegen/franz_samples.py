"""Definitions in franz-go's language for tests, and the classes generated from them."""

from __future__ import annotations

from types import ModuleType

from codegen.franz.dsl import parse
from codegen.schema.model import Field, Message
from tests.support.schema_samples import module_of

FILE = "sample"
HEADER = "SampleRequest => key 900, max version 5, flexible v3+"


def messages(text: str) -> list[Message]:
    """Return the checked messages of a file."""
    return list(parse(text, FILE))


def only_message(*fields: str, header: str = HEADER) -> Message:
    """Return the request with these lines as its fields."""
    (message,) = messages("\n".join([header, *(f"  {field}" for field in fields)]))
    return message


def only_field(*lines: str, header: str = HEADER) -> Field:
    """Return the only field of the request."""
    (found,) = only_message(*lines, header=header).fields
    return found


def generated(*fields: str, header: str = HEADER) -> ModuleType:
    """Return the module generated from the request."""
    return module_of(only_message(*fields, header=header))
