"""Schemas larger than Kafka's, and names that generated code uses itself."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from codegen import generate
from codegen.__main__ import ROOT, main
from codegen.emit.module import emit_module
from codegen.emit.plan import plan
from codegen.packages import PACKAGES
from codegen.schema.kafka_json import parse
from codegen.schema.naming import RESERVED_CLASS_NAMES, RESERVED_LOCAL_NAMES
from tests.support.both_codecs import read, written
from tests.support.random_messages import random_message
from tests.support.schema_samples import everything, field, generated, message, nested, oddities, tagged

MIXED = ("int8", "int16", "uuid", "bool", "int64")


def round_trips(fields: list[dict[str, Any]]) -> None:
    cls = generated(message(fields=fields)).SampleRequest
    random = Random(1)
    for version in range(4):
        for value in (cls(), *(random_message(random, cls, version) for _ in range(5))):
            assert read(cls, written(value, version), version) == value


def mixed(count: int) -> list[dict[str, Any]]:
    return [field(name=f"Field{number}", type=MIXED[number % len(MIXED)]) for number in range(count)]


class TestSizes:
    @pytest.mark.parametrize("count", [60, 100, 1000])
    def test_fields_of_fixed_size(self, count: int) -> None:
        round_trips(mixed(count))
        round_trips([field(name=f"Field{number}") for number in range(count)])

    def test_fields_of_fixed_size_after_a_string(self) -> None:
        round_trips([field(name="Text", type="string"), *mixed(100)])
        round_trips([field(name="Text", type="string", nullableVersions="1+"), *mixed(100)])

    def test_rows_of_many_columns(self) -> None:
        columns = [
            field(name=f"Field{number}", type="[]int32" if number % 2 else "int32") for number in range(60)
        ]
        round_trips([field(type="[]Part", fields=columns)])

    def test_different_runs_have_different_readers(self) -> None:
        parts = [field(name="A", type="Part", fields=mixed(60)), field(name="B", type="string")]
        round_trips([*parts, field(name="C", type="Other", fields=mixed(63))])

    def test_many_tags(self) -> None:
        round_trips([tagged(name=f"Field{tag}", type=MIXED[tag % 5], tag=tag) for tag in range(200)])

    @pytest.mark.parametrize("depth", [9, 16])
    def test_structs_inside_each_other(self, depth: int) -> None:
        round_trips([nested(depth)])


class TestNames:
    def test_no_struct_and_no_local_can_have_a_name_that_generated_code_needs(self) -> None:
        samples = [
            emit_module(plan(parse(json.dumps(each), "x")), "x") for each in (everything(), *oddities())
        ]
        modules = [path.read_text() for each in PACKAGES for path in (ROOT / each.target).glob("*_re*.py")]
        needed = {name for text in samples + modules for name in _bound_at_the_top(text)}
        public = {name for name in needed if not name.startswith("_")} - {"annotations"}
        assert public - RESERVED_LOCAL_NAMES <= RESERVED_CLASS_NAMES

    @pytest.mark.parametrize("name", sorted(RESERVED_LOCAL_NAMES))
    def test_a_field_may_be_called_like_a_function(self, name: str) -> None:
        called = "".join(word.title() for word in name.split("_"))
        for kind in ("string", "int32", "[]int32", "[]string", "[]uuid"):
            late = tagged(name="Late", type="string", nullableVersions="2+")
            cls = generated(message(fields=[field(name=called, type=kind), late])).SampleRequest
            long = cls(late="z" * 300)
            value = random_message(Random(name), cls, 3)
            odd = cls(unknown_tagged_fields=((9, b"z"),))
            for each in (long, value, odd):
                assert read(cls, written(each, 3), 3) == each


def _bound_at_the_top(text: str) -> set[str]:
    """Return the names that a module imports or assigns; its classes are the schema's own."""
    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def test_text_that_does_not_compile_is_an_error_of_its_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schemas, target = tmp_path / "schemas", tmp_path / "made"
    schemas.mkdir()
    (schemas / "SampleRequest.json").write_text(json.dumps(message()))
    monkeypatch.setattr(generate, "emit_module", lambda *_: "def f(:\n")
    assert main(["generate", "--from", str(schemas), "--into", str(target)]) == 1
    assert "SampleRequest.json: becomes Python that does not compile" in capsys.readouterr().err
    assert not target.exists()
