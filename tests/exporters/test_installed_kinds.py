"""Kinds of sinks that other packages bring along."""

from __future__ import annotations

from importlib import invalidate_caches
from pathlib import Path

import pytest

from kraft_wire.exporters.installed import find_kinds, kind_of
from kraft_wire.exporters.kinds import KINDS
from kraft_wire.exporters.settings import read_exporters, types_in

P = "kraft.wire.exporter."
MODULE = """
from kraft_wire.configs.types import ConfigKey
from kraft_wire.exporters.kinds import SinkKind

KIND = SinkKind("metadata_siren", (ConfigKey("volume", "INT", "5", minimum=0),))
NO_KIND = 1


class Siren:
    def __init__(self, volume):
        self.volume = volume


def make_sink(exporter):
    return Siren(exporter.options["volume"])
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with one good entry point and two bad ones."""
    (tmp_path / "metadata_siren.py").write_text(MODULE)
    info = tmp_path / "metadata_siren-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: metadata-siren\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[kraft_wire.exporters]\n"
        "siren = metadata_siren:KIND\n"
        "gone = metadata_siren_gone:KIND\n"
        "number = metadata_siren:NO_KIND\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    invalidate_caches()


@pytest.mark.usefixtures("package")
def test_a_kind_of_another_package_has_its_own_keys() -> None:
    given = {f"{P}loud.type": "siren", f"{P}loud.volume": "11"}
    found = find_kinds(types_in(given))
    assert found.problems == ()
    read = read_exporters(["loud"], given, found.kinds)
    assert read.problems == ()
    assert read.exporters[0].options == {"volume": 11}
    assert kind_of("siren").module == "metadata_siren"


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "reason"),
    [("gone", "No module named 'metadata_siren_gone'"), ("number", "metadata_siren:NO_KIND is no SinkKind")],
)
def test_a_kind_that_can_not_be_loaded_is_a_problem_only_for_those_that_want_it(
    name: str, reason: str
) -> None:
    (problem,) = find_kinds({name}).problems
    assert "metadata-siren" in problem
    assert reason in problem
    assert find_kinds({"siren"}).problems == ()


def test_a_kind_that_nobody_has_is_no_kind() -> None:
    assert find_kinds({"smoke"}) == (KINDS, ())
    with pytest.raises(KeyError):
        kind_of("smoke")


def test_a_kind_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraft_wire.exporters.installed.find_spec", lambda name: None)
    (problem,) = find_kinds({"kafka"}).problems
    assert problem == (
        "an exporter of type kafka needs confluent_kafka, which isn't installed:"
        " pip install 'kraft-wire[kafka]'"
    )
