"""The commands ``kraft-wire pipeline``."""

from __future__ import annotations

from importlib.util import find_spec

from kraft_wire.cli.errors import CommandError


def check_extra(extra: str = "spark", *libraries: str) -> None:
    """Raise CommandError if a library of an extra isn't installed; by default pyarrow or pyspark."""
    missing = [name for name in libraries or ("pyarrow", "pyspark") if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise CommandError(f"{' and '.join(missing)} {verb} not installed: install kraft-wire[{extra}]")
