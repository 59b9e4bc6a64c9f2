"""The schemas of other Kafka versions can be imported from their jars, generated, used and compared with
4.4.0."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from codegen.__main__ import ROOT, main
from codegen.diff import Diff, compare
from codegen.packages import NEWEST_KAFKA, SCHEMAS
from codegen.schema.sources import read_schemas
from compat.harness.kafka.jars import find_jars
from kraft_wire.protocol.message import Message, decode_message_carefully, encode_message_carefully
from tests.support.random_messages import messages_of, random_message

SCHEMA_COUNTS = {"3.9.2": 240, "4.3.1": 280}
VERSIONS = sorted(SCHEMA_COUNTS)
FOUND_ON_THE_WAY = {
    # Preview messages of share groups, whose requests are unstable in 3.9, or which only brokers write.
    ("3.9.2", NEWEST_KAFKA): {"ReadShareGroupStateSummaryResponse", "ShareGroupMetadataValue"},
    ("3.9.2", "4.3.1"): {"ReadShareGroupStateSummaryResponse", "ShareGroupMetadataValue"},
    ("4.3.1", NEWEST_KAFKA): set(),
}
"""Messages whose bytes differ at a version that both Kafka versions have."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a project root with the schemas of all versions; those of 4.4.0 are the committed ones."""
    root = tmp_path_factory.mktemp("versions")
    for version in VERSIONS:
        jars = find_jars(version).folder
        assert main(["import", "--kafka", version, "--jars", str(jars), "--root", str(root)]) == 0
    (root / SCHEMAS / NEWEST_KAFKA).symlink_to(ROOT / SCHEMAS / NEWEST_KAFKA)
    return root


@pytest.fixture(scope="module")
def packages(root: Path) -> Iterator[dict[str, str]]:
    """Return the name of every version's package; that of 4.4.0 is the committed one."""
    names = {version: f"kafka_{version.replace('.', '_')}" for version in VERSIONS}
    for version, name in names.items():
        schemas = root / SCHEMAS / version
        assert main(["generate", "--from", str(schemas), "--into", str(root / "packages" / name)]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "packages"))
        yield names | {NEWEST_KAFKA: "kraft_wire.protocol.messages"}


def versions_of(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


def difference(root: Path, old: str, new: str) -> Diff:
    sides = ([each.message for each in read_schemas(root / SCHEMAS / version)] for version in (old, new))
    return compare(*sides)


def test_the_committed_schemas_are_the_jars(tmp_path: Path) -> None:
    jars = find_jars(NEWEST_KAFKA).folder
    assert main(["import", "--kafka", NEWEST_KAFKA, "--jars", str(jars), "--root", str(tmp_path)]) == 0
    imported, committed = (folder / SCHEMAS / NEWEST_KAFKA for folder in (tmp_path, ROOT))
    assert {path.name: path.read_text() for path in imported.iterdir()} == {
        path.name: path.read_text() for path in committed.iterdir()
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_every_schema_becomes_a_module(version: str, packages: dict[str, str]) -> None:
    index: ModuleType = import_module(packages[version])
    assert len(index.MODULES) == SCHEMA_COUNTS[version]
    for name, module in index.MODULES.items():
        cls = getattr(import_module(f"{packages[version]}.{module}"), name)
        assert name == cls.NAME


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_written_is_read(version: str, packages: dict[str, str]) -> None:
    for cls in messages_of(packages[version]):
        for message_version in versions_of(cls):
            random = Random(f"{version} {cls.NAME} {message_version}")
            for _ in range(3):
                message = random_message(random, cls, message_version)
                raw = message.encode(message_version)
                assert cls.decode_from(b"ab" + raw, message_version, 2) == (message, 2 + len(raw))
                assert decode_message_carefully(cls, raw, message_version, 0) == (message, len(raw))
                out: list[bytes] = []
                encode_message_carefully(message, out, message_version)
                assert b"".join(out) == raw


@pytest.mark.parametrize(("old", "new"), FOUND_ON_THE_WAY)
def test_the_bytes_of_common_versions(old: str, new: str, root: Path, packages: dict[str, str]) -> None:
    """Messages that compare as equal are equal: new code decodes old bytes and encodes them unchanged."""
    different = {
        (each.name, version)
        for each in difference(root, old, new).messages
        for version in each.different_bytes
    }
    assert {name for name, _ in different} == FOUND_ON_THE_WAY[old, new]
    new_classes = {cls.NAME: cls for cls in messages_of(packages[new])}
    passed = 0
    for cls in messages_of(packages[old]):
        successor = new_classes.get(cls.NAME)
        for version in versions_of(cls):
            if successor is None or version not in versions_of(successor) or (cls.NAME, version) in different:
                continue
            random = Random(f"{old} {new} {cls.NAME} {version}")
            for _ in range(3):
                raw = random_message(random, cls, version, unknown_tags=False).encode(version)
                assert successor.decode(raw, version).encode(version) == raw, (cls.NAME, version)
                passed += 1
    assert passed > 1500


def test_from_4_3_to_4_4_everything_is_compatible(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "4.3.1", NEWEST_KAFKA, "--root", str(root)]) == 0
    out = capsys.readouterr().out
    assert "\n268 messages are alike, 12 changed, 6 added, 0 removed\ncompatible\n" in out
    assert (
        "    AcceptableRecoveryLagLegacy: was called AcceptableRecoveryLag; the bytes are the same\n" in out
    )


def test_from_3_9_to_4_3_it_is_not(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """4.0 dropped old versions (KIP-896), ZooKeeper and the APIs by which its controller led brokers."""
    assert main(["diff", "3.9.2", "4.3.1", "--root", str(root)]) == 1
    out = capsys.readouterr().out
    assert "\nFetchRequest\n  ! versions 0-3 removed\n    version 18 added\n" in out
    assert "\nLeaderAndIsrRequest\n  ! versions 0-7 removed\n\n" in out
    assert "  ! no longer served by zkBroker\n" in out
    assert "    Topics.Partitions.ReplicaId: was called CandidateId; the bytes are the same\n" in out
