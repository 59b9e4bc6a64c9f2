"""The messages in Python beside the compiled ones: every generated module is imported again under another
name."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from kraft_wire.protocol import messages
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.schema import Structure
from kraft_wire.protocol.tier import PURE, tier_of

PREFIX = "python_twins_of"


@cache
def _module(name: str) -> ModuleType:
    own_name = f"{PREFIX}.{name}"
    spec = spec_from_file_location(own_name, f"{messages.__path__[0]}/{name.rpartition('.')[2]}.py")
    assert spec is not None
    assert spec.loader is not None
    found = sys.modules[own_name] = module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def twin_class(cls: type[Structure]) -> Any:
    """Return the same class, with its codec in Python."""
    found = getattr(_module(cls.__module__), cls.__name__)
    assert found is not cls
    assert not issubclass(found, Message) or tier_of(found) == PURE
    return found


def twin(value: Any) -> Any:
    """Return the same value made of those classes; a value of no generated class stays as it is."""
    if isinstance(value, list | tuple):
        return type(value)(map(twin, value))
    if not isinstance(value, Structure) or not type(value).__module__.startswith(messages.__name__):
        return value
    made = twin_class(type(value))()
    for field in value.__struct_fields__:
        if hasattr(value, field):
            setattr(made, field, twin(getattr(value, field)))
        else:
            delattr(made, field)
    return made
