"""The output of ``codegen diff``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codegen.__main__ import ROOT, main
from codegen.packages import NEWEST_KAFKA as NEWEST
from tests.codegen.diff_samples import tagged
from tests.support.schema_samples import field, message


class TestCommand:
    @pytest.fixture
    def folders(self, tmp_path: Path) -> tuple[str, str]:
        """Two sets of schemas with a compatible and an incompatible change."""
        old = [message(), message(name="OtherRequest", apiKey=901)]
        new = [
            message(fields=[field(type="int64")]),
            message(name="OtherRequest", apiKey=901, fields=[field(), tagged()]),
            message(name="FreshRequest", apiKey=902),
        ]
        for name, nodes in (("old", old), ("new", new)):
            (tmp_path / name).mkdir()
            for node in nodes:
                (tmp_path / name / f"{node['name']}.json").write_text(json.dumps(node))
        return str(tmp_path / "old"), str(tmp_path / "new")

    def test_text(self, folders: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        old, new = folders
        assert main(["diff", old, new]) == 1
        assert capsys.readouterr().out == (
            f"{old} -> {new}\n"
            "\n"
            "FreshRequest\n"
            "    added: request 902, versions 0-3\n"
            "\n"
            "OtherRequest\n"
            "    Extra: added: int32, versions 2+, tag 0\n"
            "\n"
            "SampleRequest\n"
            "  ! First: type int32 -> int64; breaks versions 0-3\n"
            "    different bytes at versions 0-3\n"
            "\n"
            "0 messages are alike, 2 changed, 1 added, 0 removed\n"
            "incompatible: 1 message (1 type-changed)\n"
            "bytes at versions that both have: different in SampleRequest\n"
        )

    def test_json(self, folders: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        old, new = folders
        assert main(["diff", old, new, "--json"]) == 1
        found = json.loads(capsys.readouterr().out)
        assert (found["old"], found["new"], found["compatible"], found["same_bytes"]) == (
            old,
            new,
            False,
            False,
        )
        assert found["alike"] == 0
        assert [each["message"] for each in found["messages"]] == [
            "FreshRequest",
            "OtherRequest",
            "SampleRequest",
        ]
        assert found["messages"][2] == {
            "message": "SampleRequest",
            "old_versions": "0-3",
            "new_versions": "0-3",
            "compatible": False,
            "different_bytes": [0, 1, 2, 3],
            "changes": [
                {
                    "rule": "type-changed",
                    "field": "First",
                    "change": "type int32 -> int64; breaks versions 0-3",
                    "compatible": False,
                    "broken_versions": [0, 1, 2, 3],
                }
            ],
        }

    def test_bytes_alone(self, folders: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        old, new = folders
        assert main(["diff", old, new, "--wire"]) == 1
        out = capsys.readouterr().out
        assert "SampleRequest" in out
        assert "OtherRequest" not in out
        (Path(old) / "SampleRequest.json").write_text(json.dumps(message(fields=[field(default="1")])))
        (Path(new) / "SampleRequest.json").unlink()
        assert main(["diff", old, new, "--wire"]) == 0
        assert capsys.readouterr().out.endswith("bytes at versions that both have: the same\n")
        assert main(["diff", old, new]) == 1

    def test_a_version_by_its_number_beside_a_folder(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["diff", NEWEST, str(ROOT / "schemas" / "kafka" / NEWEST)]) == 0
        assert (
            "286 messages are alike, 0 changed, 0 added, 0 removed\ncompatible\n" in capsys.readouterr().out
        )

    def test_a_version_that_is_not_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["diff", "1.2.3", NEWEST]) == 2
        assert capsys.readouterr().err == (
            "codegen: 1.2.3: neither a folder nor in schemas/kafka;"
            " `python -m codegen import --kafka 1.2.3` fetches it\n"
        )
        assert main(["diff", "nowhere", NEWEST]) == 2
        assert capsys.readouterr().err == "codegen: nowhere: neither a folder nor in schemas/kafka\n"

    @pytest.mark.parametrize("file", ["enums", "notes", "README.md"])
    def test_a_folder_without_a_schema_at_its_top(
        self, tmp_path: Path, file: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "deeper").mkdir()
        (tmp_path / "deeper" / "fetch").write_text("")
        (tmp_path / file).write_text("")
        assert main(["diff", str(tmp_path), NEWEST]) == 2
        assert f"codegen: {tmp_path}: " in capsys.readouterr().err

    def test_a_file_that_is_not_a_schema(
        self, folders: tuple[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        old, new = folders
        (Path(new) / "SampleRequest.json").write_text("{")
        assert main(["diff", old, new]) == 2
        assert "codegen: SampleRequest.json: not one JSON object" in capsys.readouterr().err

    def test_wrong_usage(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as exit_:
            main(["diff", NEWEST])
        assert exit_.value.code == 2
