"""What tests of the data source share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from metadata_logs import LogWriter


@pytest.fixture
def make_log(tmp_path: Path) -> Iterator[Callable[..., LogWriter]]:
    """Makes a log's folder below ``tmp_path``."""
    with ExitStack() as stack:

        def make(folder: str, cluster: str = "one", *, epoch: int = 1) -> LogWriter:
            log = LogWriter(tmp_path / folder, cluster, epoch=epoch)
            stack.callback(log.close)
            return log

        yield make
