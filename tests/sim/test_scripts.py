"""Known bugs of Kafka and of others, as transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.transcript import replay

FOLDER = Path(__file__).parent.parent / "scripts"
SCRIPTS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    text = path.read_text()
    assert replay(text) == text, f"read the diff after: python -m tests.sim.transcript {path}"


def test_every_script_is_in_the_index() -> None:
    index = (FOLDER / "README.md").read_text()
    assert [path.name for path in SCRIPTS if f"`{path.name}`" not in index] == []
