"""Flushing files while another process deletes some of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_wire.lake.flushing import flush, flush_tree


def test_what_goes_from_a_tree_need_not_be_flushed(tmp_path: Path) -> None:
    """A dangling link is listed and can't be opened, like a file that is deleted in between."""
    tmp_path.joinpath("kept").touch()
    tmp_path.joinpath("gone").symlink_to(tmp_path / "nowhere")
    flush_tree(tmp_path)
    flush_tree(tmp_path / "nowhere")


def test_what_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        flush([tmp_path / "nowhere"])
