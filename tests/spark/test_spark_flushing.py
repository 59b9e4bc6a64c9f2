"""Files on stable storage, while somebody else deletes some of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_wire.spark.pipeline.flushing import flush, flush_tree


def test_what_goes_from_a_tree_need_not_be_flushed(tmp_path: Path) -> None:
    """A link to nowhere is listed, and cannot be opened: as a file that goes in between."""
    tmp_path.joinpath("kept").touch()
    tmp_path.joinpath("gone").symlink_to(tmp_path / "nowhere")
    flush_tree(tmp_path)
    flush_tree(tmp_path / "nowhere")


def test_what_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        flush([tmp_path / "nowhere"])
