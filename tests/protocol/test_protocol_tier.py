"""Compiled packages that can't be used: the Python codec works, with one warning or none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraft_wire.protocol.tier import INTERFACE

PACKAGE = f"""
ENABLED, INTERFACE = True, {INTERFACE}
FINGERPRINTS = {{"kraft_wire.protocol.messages": {{"vote_request": "0", "no_such_message": "0"}}}}
def install(cls):
    raise ImportError("no extension")
"""
REPORT = """
import kraft_wire.protocol.tier as t
from kraft_wire.protocol.messages.vote_request import VoteRequest
print(t.tier(), t.tier_of(VoteRequest), len(VoteRequest().encode(2)))
"""


def report(site: Path, environment: str = "") -> tuple[str, list[str]]:
    """Return the output of REPORT if the package in ``site`` is found, and the warnings."""
    settings = os.environ | {"PYTHONPATH": str(site), "KRAFT_WIRE_PURE": environment}
    command = [sys.executable, "-c", REPORT]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), [line for line in done.stderr.splitlines() if "RuntimeWarning" in line]


def package(site: Path, text: str) -> Path:
    (site / "kraft_wire_compiled").mkdir()
    (site / "kraft_wire_compiled/__init__.py").write_text(text)
    return site


def test_an_empty_folder_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "kraft_wire_compiled").mkdir()
    assert report(tmp_path) == ("pure pure 7", [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def", "can't be loaded (SyntaxError"),
        ("x = undefined", "can't be loaded (NameError"),
        ("import no_such_module", "can't be loaded (No module named 'no_such_module')"),
        ("", "is made for interface unknown"),
        ("INTERFACE = 0", "is made for interface 0"),
        (PACKAGE, "was made from another VoteRequest"),
    ],
)
def test_a_package_that_does_not_work_is_a_warning(tmp_path: Path, text: str, reason: str) -> None:
    printed, (warning,) = report(package(tmp_path, text))
    assert printed == "pure pure 7"
    assert f"kraft_wire_compiled {reason}" in warning


def test_a_package_without_its_extensions_is_not_in_use(tmp_path: Path) -> None:
    fits = PACKAGE.replace('"vote_request": "0"', '"vote_request": known')
    known = "import re, kraft_wire.protocol as p\n" + (
        "text = open(p.__path__[0] + '/messages/vote_request.py').read()\n"
        "known = re.search(r\"use_compiled\\(VoteRequest, '(.*)'\\)\", text)[1]\n"
    )
    printed, (warning,) = report(package(tmp_path, known + fits))
    assert printed == "pure pure 7"
    assert "can't be loaded (no extension)" in warning


def test_any_setting_but_an_empty_one_switches_it_off(tmp_path: Path) -> None:
    text = "import os\nINTERFACE, ENABLED = 0, not os.environ.get('KRAFT_WIRE_PURE')"
    site = package(tmp_path, text)
    assert report(site, "0") == ("pure pure 7", [])
    assert report(site)[1]
