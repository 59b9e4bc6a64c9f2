"""The input of the compiled wheel: every message once, made from the plans of the generated modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codegen.cython.package import GROUPS, render_cython

ROOT = Path(__file__).parents[2]
MESSAGES = ROOT / "kraft_wire" / "protocol" / "messages"


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return render_cython(ROOT)


def test_the_same_schemas_make_the_same_text(files: dict[str, str]) -> None:
    assert render_cython(ROOT) == files
    assert len(files) == GROUPS + 1


def test_the_index_has_the_fingerprints_of_the_generated_modules(files: dict[str, str]) -> None:
    named = {}
    for path in MESSAGES.glob("*.py"):
        found = re.search(r"^use_compiled\(\w+, '(\w+)'\)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        if found is not None:
            named[path.stem] = found[1]
    assert len(named) > 250
    index = dict(re.findall(r"^        '(\w+)': '([0-9a-f]+)',$", files["index.py"], re.MULTILINE))
    assert index == named


def test_every_struct_is_read_and_written_once(files: dict[str, str]) -> None:
    text = "\n".join(files.values())
    shapes = re.findall(r"^cdef Shape shape_(\w+)$", text, re.MULTILINE)
    assert len(set(shapes)) == len(shapes) > 600
    for pattern in (r"^cdef Bytes read_(\w+)\(PyObject\*\* slot", r"^cdef bint write_(\w+)\(Writer"):
        assert sorted(re.findall(pattern, text, re.MULTILINE)) == sorted(shapes)


def test_groups_are_of_about_the_same_size(files: dict[str, str]) -> None:
    sizes = [len(text) for name, text in files.items() if name.endswith(".pyx")]
    assert max(sizes) < 1.2 * min(sizes)
