"""Fixtures of every test, and command-line options of some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.metadata_logs import LogWriter

# No test asserts a time, and hypothesis doesn't either: a busy machine is not a bug.
settings.register_profile("kraft-wire", deadline=None, print_blob=True)
settings.load_profile("kraft-wire")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fuzzing of the codec")
    group.addoption("--fuzz-inputs", type=int, default=200_000, help="how many inputs (200000)")
    group.addoption("--fuzz-seed", type=int, default=0, help="other seed, other inputs (0)")


@pytest.fixture
def make_log(tmp_path: Path) -> Iterator[Callable[..., LogWriter]]:
    """Makes a log's folder below ``tmp_path``."""
    with ExitStack() as stack:

        def make(folder: str, cluster: str = "one", *, epoch: int = 1) -> LogWriter:
            log = LogWriter(tmp_path / folder, cluster, epoch=epoch)
            stack.callback(log.close)
            return log

        yield make
