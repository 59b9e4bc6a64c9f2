"""Which codec a message has: the Python of its module, or the same compiled (package kraft_wire_compiled).

That package is optional, and takes a message over only if it was made from the same plan, for the same
interface. The environment variable KRAFT_WIRE_PURE, when it isn't empty, leaves every message its Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final
from warnings import warn

from kraft_wire.protocol.message import Message

INTERFACE: Final = 2
"""What compiled code takes for granted besides the messages' plans: how Structure, Message and Uuid are made,
what the methods of a message do, the limits. It grows by one whenever any of that changes."""

PURE: Final = "pure"
COMPILED: Final = "compiled"

_BROKEN: Final = (AttributeError, ImportError, NameError, SyntaxError, TypeError, ValueError)
"""What a module that isn't as we made it may raise while it is imported."""

_taken_over: set[type[Message]] = set()
_warned = False


def _load() -> Any:
    """The compiled package; None where it isn't installed, is switched off, or doesn't fit."""
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
        # A folder without a module, as pip leaves where somebody's files lie among its own.
        return None
    if not getattr(kraft_wire_compiled, "ENABLED", True):
        return None
    theirs = getattr(kraft_wire_compiled, "INTERFACE", "unknown")
    if theirs != INTERFACE:
        _warn_once(f"is made for interface {theirs}, this is {INTERFACE}")
        return None
    return kraft_wire_compiled


def use_compiled(cls: type[Message], fingerprint: str) -> None:
    """Give a message its compiled codec, if there is one; ``fingerprint`` is that of its module's plan.

    Called by every generated module, at its end.
    """
    package, _, module = cls.__module__.rpartition(".")
    if _compiled is None or package not in _compiled.FINGERPRINTS:
        return
    if _compiled.FINGERPRINTS[package].get(module) != fingerprint:
        _warn_once(f"was made from another {cls.NAME}")
        return
    try:
        fits = _compiled.install(cls)
    except ImportError as error:  # made for another interpreter, say
        _warn_once(f"can't be loaded ({error})")
        return
    if fits:
        _taken_over.add(cls)
    else:
        _warn_once(f"does not know how this interpreter lays {cls.NAME} out")


def tier_of(cls: type[Message]) -> str:
    """PURE or COMPILED."""
    return COMPILED if cls in _taken_over else PURE


def tier() -> str:
    """COMPILED where the compiled package is in use: where any message has its codec from there."""
    return COMPILED if _taken_over or any(map(_is_taken_over, _covered())) else PURE


def _covered() -> Iterator[str]:
    """The modules of the messages that the compiled package knows."""
    for package, modules in () if _compiled is None else _compiled.FINGERPRINTS.items():
        yield from (f"{package}.{module}" for module in modules)


def _is_taken_over(module: str) -> bool:
    """Whether a message gets its compiled codec when it is imported."""
    before = len(_taken_over)
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        # The compiled package is of another version, and knows a message that is none here.
        if error.name != module:
            raise
    return len(_taken_over) > before


def _warn_once(reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(f"kraft_wire_compiled {reason}; Python does its work", RuntimeWarning, stacklevel=3)


_compiled = _load()
