"""What commands on the tables need beside kraft-wire itself."""

from __future__ import annotations

from importlib.util import find_spec

from kraft_wire.cli.errors import CommandError


def check_extra(extra: str = "spark", *libraries: str) -> None:
    """Raises CommandError where the libraries of an extra aren't installed: the tables', unless others are
    named."""
    missing = [name for name in libraries or ("pyarrow", "pyspark") if find_spec(name) is None]
    if missing:
        raise CommandError(f"{' and '.join(missing)} isn't installed: install kraft-wire[{extra}]")
