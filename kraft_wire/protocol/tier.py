"""Choose a message's codec: the Python of its module, or the compiled one of package kraft_wire_compiled.

That package is optional. It replaces a message's codec only if it was made from the same plan and for the
same interface. If the environment variable KRAFT_WIRE_PURE isn't empty, every message keeps its Python codec.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final
from warnings import warn

from kraft_wire.protocol.message import Message

INTERFACE: Final = 2
"""The version of what compiled code assumes besides the plans of the messages: how Structure, Message and
Uuid are built, what the methods of a message do, the limits. Raise this number when any of that changes."""

PURE: Final = "pure"
COMPILED: Final = "compiled"

_BROKEN: Final = (AttributeError, ImportError, NameError, SyntaxError, TypeError, ValueError)
"""The exceptions that the import of a damaged or foreign module may raise."""

_taken_over: set[type[Message]] = set()
_warned = False


def _load() -> Any:
    """Return the compiled package; None if it isn't installed, is switched off, or doesn't fit."""
    try:
        import kraft_wire_compiled
    except ModuleNotFoundError as error:
        if error.name != "kraft_wire_compiled":
            _warn_once(f"can't be loaded ({error})")
        return None
    except _BROKEN as error:
        _warn_once(f"can't be loaded ({error!r})")
        return None
    if getattr(kraft_wire_compiled, "__file__", None) is None:
        # A folder without a module: pip doesn't delete it if it holds other files.
        return None
    if not getattr(kraft_wire_compiled, "ENABLED", True):
        return None
    theirs = getattr(kraft_wire_compiled, "INTERFACE", "unknown")
    if theirs != INTERFACE:
        _warn_once(f"is made for interface {theirs}, but this is interface {INTERFACE}")
        return None
    return kraft_wire_compiled


def use_compiled(cls: type[Message], fingerprint: str) -> None:
    """Give a message its compiled codec, if there is one. ``fingerprint`` is that of its module's plan.

    Every generated module calls this at its end.
    """
    package, _, module = cls.__module__.rpartition(".")
    if _compiled is None or package not in _compiled.FINGERPRINTS:
        return
    if _compiled.FINGERPRINTS[package].get(module) != fingerprint:
        _warn_once(f"was made from another {cls.NAME}")
        return
    try:
        fits = _compiled.install(cls)
    except ImportError as error:  # for example made for another interpreter
        _warn_once(f"can't be loaded ({error})")
        return
    if fits:
        _taken_over.add(cls)
    else:
        _warn_once(f"does not know this interpreter's layout of {cls.NAME}")


def tier_of(cls: type[Message]) -> str:
    """Return PURE or COMPILED."""
    return COMPILED if cls in _taken_over else PURE


def tier() -> str:
    """Return COMPILED if the compiled package is in use, that is, if any message has its codec from there."""
    return COMPILED if _taken_over or any(map(_is_taken_over, _covered())) else PURE


def _covered() -> Iterator[str]:
    """Yield the modules of the messages that the compiled package has."""
    for package, modules in () if _compiled is None else _compiled.FINGERPRINTS.items():
        yield from (f"{package}.{module}" for module in modules)


def _is_taken_over(module: str) -> bool:
    """Whether a message gets its compiled codec when it is imported."""
    before = len(_taken_over)
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        # The compiled package is of another version and has a message that doesn't exist here.
        if error.name != module:
            raise
    return len(_taken_over) > before


def _warn_once(reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(f"kraft_wire_compiled {reason}; the Python codec is used instead", RuntimeWarning, stacklevel=3)


_compiled = _load()
