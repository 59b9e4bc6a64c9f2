"""Kafka's own bugs, and others' we know of, as transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from transcript import replay

SCRIPTS = sorted((Path(__file__).parent.parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    text = path.read_text()
    assert replay(text) == text, f"read the diff after: python tests/sim/transcript.py {path}"
