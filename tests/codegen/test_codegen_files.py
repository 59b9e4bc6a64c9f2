"""Importing schemas from jars, the committed schemas, and the comparison with committed code."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from codegen.__main__ import ROOT, main
from codegen.emit.module import MARK
from codegen.generate import load_schemas, render, write
from codegen.importer import MANIFEST, import_schemas, jars_of
from codegen.packages import NEWEST_KAFKA, SCHEMAS
from codegen.schema.errors import ImportFailed
from codegen.schema.model import walk_fields
from codegen.schema.naming import json_name, snake_case

COMMITTED = ROOT / SCHEMAS / NEWEST_KAFKA
SOURCE = """// Licensed to somebody
// under some licence
{
  "apiKey": 5, "type": "request", "listeners": ["broker"], "name": "PokeRequest",
  // Version 1 is new.
  "validVersions": "0-1", "flexibleVersions": "1+", "latestVersionUnstable": false,
  "commonStructs": [{ "name": "Spot", "versions": "0+", "fields": [
    { "name": "X", "type": "int8", "versions": "0+", "about": "How far right." }]}],
  "fields": [
    { "name": "Spots", "type": "[]Spot", "versions": "0+", "about": "Where to poke." },
    { "name": "Hard", "type": "bool", "versions": "1+", "default": false, "ignorable": true,
      "about": "Whether it // hurts." }
  ]
}
"""


def make_jars(folder: Path, version: str = "9.9.9", source: str = SOURCE) -> None:
    folder.mkdir(exist_ok=True)
    for each in jars_of(version):
        with zipfile.ZipFile(folder / f"{each.artifact}-{version}.jar", "w") as jar:
            jar.writestr("META-INF/other.json", "not a schema")
            name = "PokeRequest" if each.artifact == "kafka-clients" else each.artifact
            jar.writestr(f"{each.folder}{name}.json", source.replace("PokeRequest", name))


class TestImport:
    def test_facts_are_kept_and_prose_is_not(self, tmp_path: Path) -> None:
        make_jars(tmp_path / "jars")
        target = tmp_path / "out"
        assert import_schemas("9.9.9", target, tmp_path / "jars") == 7
        text = (target / "PokeRequest.json").read_text()
        assert json.loads(text) == {
            "apiKey": 5,
            "type": "request",
            "name": "PokeRequest",
            "validVersions": "0-1",
            "flexibleVersions": "1+",
            "listeners": ["broker"],
            "commonStructs": [
                {
                    "name": "Spot",
                    "versions": "0+",
                    "fields": [{"name": "X", "type": "int8", "versions": "0+"}],
                }
            ],
            "fields": [
                {"name": "Spots", "type": "[]Spot", "versions": "0+"},
                {"name": "Hard", "type": "bool", "versions": "1+", "default": False, "ignorable": True},
            ],
        }

    def test_the_manifest_says_where_from(self, tmp_path: Path) -> None:
        make_jars(tmp_path / "jars")
        import_schemas("9.9.9", tmp_path / "out", tmp_path / "jars")
        manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
        assert manifest["kafka"] == "9.9.9"
        assert [jar["jar"] for jar in manifest["jars"]] == [
            f"{each.artifact}-9.9.9.jar" for each in jars_of("9.9.9")
        ]
        assert manifest["jars"][0]["schemas"] == ["PokeRequest"]
        assert all(re.fullmatch("[0-9a-f]{64}", jar["sha256"]) for jar in manifest["jars"])

    def test_files_of_an_earlier_import_are_deleted(self, tmp_path: Path) -> None:
        make_jars(tmp_path / "jars")
        import_schemas("9.9.9", tmp_path / "out", tmp_path / "jars")
        (tmp_path / "out" / "OldRequest.json").write_text("{}")
        import_schemas("9.9.9", tmp_path / "out", tmp_path / "jars")
        assert not (tmp_path / "out" / "OldRequest.json").exists()

    def test_files_that_were_never_imported_are_kept(self, tmp_path: Path) -> None:
        make_jars(tmp_path / "jars")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "MyRequest.json").write_text("precious")
        with pytest.raises(ImportFailed, match="holds something that was not imported"):
            import_schemas("9.9.9", tmp_path / "out", tmp_path / "jars")
        assert (tmp_path / "out" / "MyRequest.json").read_text() == "precious"

    def test_the_share_coordinator_came_with_kafka_4(self) -> None:
        artifacts = [{jar.artifact for jar in jars_of(version)} for version in ("3.9.2", "4.0.0")]
        assert artifacts[1] - artifacts[0] == {"kafka-share-coordinator"}

    @pytest.mark.parametrize("version", ["3.8.0", "2.8.1", "0.11.0"])
    def test_a_kafka_that_is_too_old(self, tmp_path: Path, version: str) -> None:
        with pytest.raises(ImportFailed, match=f"Kafka {version} .* take 3.9 or later"):
            import_schemas(version, tmp_path / "out", tmp_path)

    def test_a_maven_error_becomes_one_plain_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        maven = tmp_path / "mvn"
        lines = (
            "[INFO] x",
            r"[\033[1;31mERROR\033[m] no \033[1mkafka\033[m 9.9.9 -> \033[1m[Help 1]\033[m",
            "[ERROR] more",
        )
        said = r"\n".join(lines)
        maven.write_text(f"#!/bin/sh\nprintf '{said}'\nexit 1\n")
        maven.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        with pytest.raises(ImportFailed) as caught:
            import_schemas("9.9.9", tmp_path / "out", None)
        assert str(caught.value) == "Maven could not resolve Kafka 9.9.9: no kafka 9.9.9"

    @pytest.mark.parametrize("version", ["newest", "4", "../4.4.0", "4.4.0/.."])
    def test_text_that_is_not_a_version(self, tmp_path: Path, version: str) -> None:
        with pytest.raises(ImportFailed, match="is not a version of Kafka"):
            import_schemas(version, tmp_path / "out", tmp_path)

    def test_a_jar_without_schemas_where_they_should_be(self, tmp_path: Path) -> None:
        make_jars(tmp_path / "jars")
        with zipfile.ZipFile(tmp_path / "jars" / "kafka-raft-9.9.9.jar", "w") as jar:
            jar.writestr("moved/LeaderChangeMessage.json", "{}")
        with pytest.raises(ImportFailed, match=r"kafka-raft-9\.9\.9\.jar has no schema in common/message/"):
            import_schemas("9.9.9", tmp_path / "out", tmp_path / "jars")

    def test_a_file_that_is_not_a_jar(self, tmp_path: Path) -> None:
        make_jars(tmp_path / "jars")
        (tmp_path / "jars" / "kafka-raft-9.9.9.jar").write_text("what?")
        with pytest.raises(ImportFailed, match=r"kafka-raft-9\.9\.9\.jar can't be read: File is not a zip"):
            import_schemas("9.9.9", tmp_path / "out", tmp_path / "jars")

    def test_one_name_in_two_jars(self, tmp_path: Path) -> None:
        make_jars(tmp_path / "jars")
        with zipfile.ZipFile(tmp_path / "jars" / "kafka-raft-9.9.9.jar", "w") as jar:
            jar.writestr("common/message/PokeRequest.json", SOURCE)
        with pytest.raises(ImportFailed, match=r"PokeRequest: in kafka-raft-9\.9\.9\.jar and in another"):
            import_schemas("9.9.9", tmp_path / "out", tmp_path / "jars")

    def test_a_missing_jar(self, tmp_path: Path) -> None:
        make_jars(tmp_path / "jars", version="9.9.8")
        with pytest.raises(ImportFailed, match=r"kafka-clients-9\.9\.9\.jar is not in"):
            import_schemas("9.9.9", tmp_path / "out", tmp_path / "jars")

    def test_an_unknown_key(self, tmp_path: Path) -> None:
        make_jars(tmp_path / "jars", source=SOURCE.replace('"ignorable"', '"ignoreable"'))
        with pytest.raises(ImportFailed, match="Hard has the unknown key ignoreable"):
            import_schemas("9.9.9", tmp_path / "out", tmp_path / "jars")

    def test_the_command_reports_failures(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["import", "--kafka", "9.9.9", "--jars", str(tmp_path), "--root", str(tmp_path)]) == 1
        assert "codegen: kafka-clients-9.9.9.jar is not in" in capsys.readouterr().err


class TestCommittedSchemas:
    def test_there_are_286_by_kind(self) -> None:
        kinds = [each.message.kind for each in load_schemas(COMMITTED)]
        counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
        assert counts == {
            "coordinator-key": 25,
            "coordinator-value": 25,
            "data": 13,
            "header": 2,
            "metadata": 31,
            "request": 95,
            "response": 95,
        }
        assert sum(counts.values()) == 286

    def test_apis_4_to_7_have_no_versions_left(self) -> None:
        gone = [each.message for each in load_schemas(COMMITTED) if each.message.versions.empty]
        assert sorted(each.api_key or 0 for each in gone) == [4, 4, 5, 5, 6, 6, 7, 7]
        assert all(each.flexible is None and not each.fields for each in gone)

    def test_only_the_client_id_overrides_flexible_versions(self) -> None:
        overrides = [
            path
            for each in load_schemas(COMMITTED)
            for path, field in walk_fields(each.message.fields, each.message.name)
            if field.flexible is not None
        ]
        assert overrides == ["RequestHeader.ClientId"]

    def test_they_hold_no_prose(self) -> None:
        for path in COMMITTED.glob("*.json"):
            text = path.read_text(encoding="utf-8")
            assert '"about"' not in text
            assert "//" not in text
            for value in re.findall(r'": "([^"]*)"', text):
                assert " " not in value, path.name

    def test_the_manifest_names_them_all(self) -> None:
        manifest = json.loads((COMMITTED / MANIFEST).read_text())
        named = [name for jar in manifest["jars"] for name in jar["schemas"]]
        assert sorted(named) == sorted(path.stem for path in COMMITTED.glob("*.json"))


class TestGenerate:
    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        schemas = tmp_path / SCHEMAS / NEWEST_KAFKA
        schemas.mkdir(parents=True)
        for name in ("VoteRequest", "VoteResponse", "TopicRecord"):
            shutil.copy(COMMITTED / f"{name}.json", schemas)
        shutil.copy(COMMITTED / MANIFEST, schemas)
        for own in ("kraft-wire", "kip-853"):
            shutil.copytree(ROOT / "schemas" / own, tmp_path / "schemas" / own)
        return tmp_path

    def messages(self, project: Path) -> Path:
        return project / "kraft_wire" / "protocol" / "messages"

    def test_the_committed_code_is_what_the_schemas_give(self) -> None:
        assert main(["generate", "--check"]) == 0

    def test_generating_twice_changes_nothing(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["generate", "--root", str(project)]) == 0
        assert capsys.readouterr().out == (
            "4 files in kraft_wire/protocol/messages, 4 changed\n"
            "8 files in kraft_wire/protocol/own_messages, 8 changed\n"
            "9 files in kraft_wire/raft/membership/kip_853, 9 changed\n"
        )
        assert main(["generate", "--root", str(project)]) == 0
        assert ", 0 changed" in capsys.readouterr().out
        assert main(["generate", "--check", "--root", str(project)]) == 0

    @pytest.mark.parametrize("damage", ["changed", "missing", "superfluous"])
    def test_a_difference_fails_the_check_and_is_mended(
        self, project: Path, damage: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main(["generate", "--root", str(project)])
        victim = self.messages(project) / ("extra.py" if damage == "superfluous" else "vote_request.py")
        if damage == "missing":
            victim.unlink()
        else:
            victim.write_text(MARK + "x\nchanged = True\n")
        assert main(["generate", "--check", "--root", str(project)]) == 1
        assert f"{victim.name} differs from its schema" in capsys.readouterr().err
        assert main(["generate", "--root", str(project)]) == 0
        assert main(["generate", "--check", "--root", str(project)]) == 0

    def test_a_schema_under_another_name(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        schemas = project / SCHEMAS / NEWEST_KAFKA
        (schemas / "VoteRequest.json").rename(schemas / "WoteRequest.json")
        assert main(["generate", "--root", str(project)]) == 1
        assert (
            "WoteRequest.json: holds message VoteRequest; call it VoteRequest.json" in capsys.readouterr().err
        )

    def test_two_requests_with_one_key(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        schemas = project / SCHEMAS / NEWEST_KAFKA
        other = (schemas / "VoteRequest.json").read_text().replace("VoteRequest", "AVoteRequest")
        (schemas / "AVoteRequest.json").write_text(other)
        assert main(["generate", "--root", str(project)]) == 1
        assert "VoteRequest: request 52 is AVoteRequest already" in capsys.readouterr().err

    def test_no_schemas(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / SCHEMAS / NEWEST_KAFKA).mkdir(parents=True)
        assert main(["generate", "--root", str(tmp_path)]) == 1
        assert "there is no schema; import one first" in capsys.readouterr().err

    def test_files_of_messages_that_are_gone_are_removed(self, project: Path) -> None:
        folder = project / SCHEMAS / NEWEST_KAFKA
        write(render(folder, "x"), self.messages(project))
        (folder / "TopicRecord.json").unlink()
        assert write(render(folder, "x"), self.messages(project)) == ["__init__.py", "topic_record.py"]
        assert not (self.messages(project) / "topic_record.py").exists()


@pytest.mark.parametrize(
    ("kafka", "python"),
    [
        ("ClusterId", "cluster_id"),
        ("KRaftVersionRecord", "kraft_version_record"),
        ("ISRList", "isr_list"),
        ("TopicISR", "topic_isr"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
        ("From", "from_"),
        ("groupInstanceId", "group_instance_id"),
    ],
)
def test_names(kafka: str, python: str) -> None:
    assert snake_case(kafka) == python
    assert json_name(kafka) == kafka[0].lower() + kafka[1:]
