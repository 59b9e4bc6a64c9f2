"""The shortcuts of a message's code, and the folding of its lines."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from codegen.emit.fold import LIMIT, fold
from codegen.emit.layout import intervals, row_layout
from codegen.emit.one_topic import is_about_one_topic
from codegen.emit.plan import MessagePlan, plan
from codegen.schema.check import check
from codegen.schema.kafka_json import parse
from tests.support.schema_samples import field, generated, message

PARTITIONS = field(name="Partitions", type="[]Partition", fields=[field()])
TOPICS = field(name="Topics", type="[]Topic", fields=[field(name="Name", type="string"), PARTITIONS])


def planned(**changes: Any) -> MessagePlan:
    parsed = parse(json.dumps(message(**changes)), "sample")
    check(parsed)
    return plan(parsed)


class TestRows:
    def codes(self, *fields: dict[str, Any], nth: int = 0) -> str | None:
        """Return the row layout of an array's element, in the newest interval of versions or an older one."""
        made = planned(fields=[field(name="Parts", type="[]Part", fields=list(fields))])
        layout = row_layout(made.struct("Part"), intervals(made)[nth])
        return None if layout is None else layout.codes

    def test_numbers_ids_and_arrays_of_numbers_have_rows(self) -> None:
        assert self.codes(field(), field(name="Id", type="uuid")) == "i 16s"
        assert self.codes(field(type="[]int64"), field(name="Flag", type="bool")) == "q* ?"

    @pytest.mark.parametrize(
        "other",
        [
            {"type": "string"},
            {"type": "bytes"},
            {"type": "[]string"},
            {"type": "[]uuid"},
            {"type": "[]int32", "nullableVersions": "0+"},
            {"type": "Inner", "fields": [field()]},
        ],
    )
    def test_other_elements_are_read_one_by_one(self, other: dict[str, Any]) -> None:
        assert self.codes(field(), field(name="Other", **other)) is None

    def test_tagged_fields_are_not_in_the_way(self) -> None:
        tagged = field(name="Tagged", type="string", versions="2+", tag=0, taggedVersions="2+")
        assert self.codes(field(), tagged) == "i"
        assert self.codes(tagged) is None

    def test_there_are_none_where_nothing_is_compact(self) -> None:
        assert self.codes(field(), nth=-1) is None

    def test_there_are_none_where_versions_differ(self) -> None:
        late = field(name="Late", versions="3+", ignorable=True)
        assert self.codes(field(), late) == "i i"
        assert self.codes(field(), late, nth=1) == "i"
        assert self.codes(field(), field(name="Late", versions="1+", ignorable=True), nth=-1) is None

    def test_the_defaults_of_an_element_are_its_own(self) -> None:
        """Mutable defaults are created for every element."""
        inner = field(
            name="Tagged", type="Inner", versions="2+", tag=0, taggedVersions="2+", fields=[field()]
        )
        for fields in ([field(), inner], [inner, field()], [field(type="uuid"), inner]):
            module = generated(message(fields=[field(name="Parts", type="[]Part", fields=fields)]))
            request = module.SampleRequest(parts=[module.Part() for _ in range(9)])
            first, second, *_ = module.SampleRequest.decode(request.encode(3), 3).parts
            assert first == second == module.Part()
            assert first.tagged is not second.tagged


class TestOneTopic:
    def test_it_is_for_kraft_s_messages(self) -> None:
        assert is_about_one_topic(planned(name="VoteRequest", fields=[TOPICS]))
        assert not is_about_one_topic(planned(name="ListOffsetsRequest", fields=[TOPICS]))

    def test_other_arrays_of_structs_are_in_its_way(self) -> None:
        others = field(name="Others", type="[]Other", fields=[field()])
        assert not is_about_one_topic(planned(name="VoteRequest", fields=[TOPICS, others]))
        tagged = others | {"versions": "2+", "tag": 0, "taggedVersions": "2+"}
        assert is_about_one_topic(planned(name="VoteRequest", fields=[TOPICS, tagged]))

    def test_it_needs_compact_sizes(self) -> None:
        assert not is_about_one_topic(planned(name="VoteRequest", fields=[TOPICS], flexibleVersions="none"))


NAMES = ", ".join(f"name_number_{n}" for n in range(12))


@pytest.mark.parametrize(
    "line",
    [
        f"rows = [Part({NAMES}) for {NAMES} in zip(*columns)]",
        f"rows = [Part(one, two) for {NAMES} in zip(*columns)]",
        f"return [Part({NAMES}, [] if size else None, Inner({NAMES}))] if size else None",
        f"call(first, Part({NAMES}) if size < 128 else Part({NAMES}) + other, [] if size else None)",
        f"call({NAMES}, [Part(one) for one in many], {NAMES})",
        f"if {' or '.join(f'name.field_{n} is None' for n in range(12))}: pass",
    ],
)
def test_folding_changes_no_program(line: str) -> None:
    opening = "if" if line.startswith("if") else ""
    folded = "\n".join(fold(line.removesuffix(" pass")) + ["    pass"] * bool(opening))
    assert all(len(each) <= LIMIT for each in folded.split("\n"))
    assert ast.dump(ast.parse(_in_function(folded))) == ast.dump(ast.parse(_in_function(line)))


def _in_function(text: str) -> str:
    return "def function():\n" + "\n".join(f"    {line}" for line in text.split("\n"))
