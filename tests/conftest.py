"""What holds for every test, and the options of some."""

from __future__ import annotations

import pytest
from hypothesis import settings

# No test asserts a time, and hypothesis doesn't either: a busy machine is not a bug.
settings.register_profile("kraft-wire", deadline=None, print_blob=True)
settings.load_profile("kraft-wire")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fuzzing of the codec")
    group.addoption("--fuzz-inputs", type=int, default=200_000, help="how many inputs (200000)")
    group.addoption("--fuzz-seed", type=int, default=0, help="other seed, other inputs (0)")
