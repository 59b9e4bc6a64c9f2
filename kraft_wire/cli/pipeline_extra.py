"""What commands on the tables need beside kraft-wire itself."""

from __future__ import annotations

from importlib.util import find_spec

from kraft_wire.cli.errors import CommandError


def check_extra() -> None:
    """Raises CommandError where the tables' libraries aren't installed."""
    missing = [name for name in ("pyarrow", "pyspark") if find_spec(name) is None]
    if missing:
        raise CommandError(f"{' and '.join(missing)} isn't installed: install kraft-wire[spark]")
