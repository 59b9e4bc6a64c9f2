"""``kraft_wire.spark.session`` is the function, as the documentation says."""

from __future__ import annotations

import subprocess
import sys
from inspect import signature

PROGRAM = """
import sys
from kraft_wire.spark import session
import kraft_wire.spark.sessions
import kraft_wire.spark.source
from kraft_wire.spark import session as again
assert session is again and callable(session), session
"""


def test_the_package_gives_the_function_that_starts_a_session() -> None:
    from kraft_wire.spark import session

    assert list(signature(session).parameters) == ["master", "settings", "remote"]


def test_importing_modules_of_the_package_does_not_replace_the_function() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
