"""``codegen diff``: every rule of evolution on small schemas."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.diff import Diff, compare, messages
from tests.codegen.diff_samples import PART, changes, changes_of, diff, fields, sample, struct, tagged
from tests.support.schema_samples import field


class TestMessages:
    def test_the_same(self) -> None:
        found = diff({}, {})
        assert found == Diff((), 1)
        assert found.compatible
        assert found.same_bytes

    def test_added(self) -> None:
        found = compare([], [sample()])
        assert [change.text for change in found.messages[0].changes] == ["added: request 900, versions 0-3"]
        assert found.compatible

    def test_removed(self) -> None:
        found = compare([sample()], [])
        assert [change.rule for change in found.messages[0].changes] == ["message-removed"]
        assert not found.compatible

    def test_removed_with_nothing_released(self) -> None:
        unstable = sample(validVersions="0", latestVersionUnstable=True)
        none = sample(validVersions="none", fields=None, flexibleVersions=None)
        assert compare([unstable], []).compatible
        assert compare([none], []).compatible

    def test_under_another_name(self) -> None:
        found = compare([sample()], [sample(name="OtherRequest")])
        assert [(each.name, [change.rule for change in each.changes]) for each in found.messages] == [
            ("OtherRequest", ["message-renamed"])
        ]
        assert found.compatible

    def test_another_name_needs_a_key_of_its_own(self) -> None:
        old = [sample(type="data", apiKey=None, name="One")]
        new = [sample(type="data", apiKey=None, name="Two")]
        assert [each.name for each in compare(old, new).messages] == ["One", "Two"]
        old = [sample(type="metadata", name="One"), sample(type="metadata", name="Two")]
        new = [sample(type="metadata", name="Three")]
        assert [each.name for each in compare(old, new).messages] == ["One", "Three", "Two"]

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            ({}, {"apiKey": 901}, ("key-changed", False)),
            ({}, {"type": "response"}, ("kind-changed", False)),
            ({}, {"validVersions": "0-4"}, ("versions-added", True)),
            ({}, {"validVersions": "1-3"}, ("versions-removed", False)),
            ({}, {"validVersions": "0-2"}, ("versions-removed", False)),
            ({"latestVersionUnstable": True}, {"validVersions": "0-2"}, ("versions-removed", True)),
            ({"validVersions": "1-3"}, {}, ("lowest-version-lowered", False)),
            ({}, {"flexibleVersions": "1+"}, ("flexible-changed", False)),
            ({}, {"flexibleVersions": "none"}, ("flexible-changed", False)),
            ({"flexibleVersions": "none"}, {"flexibleVersions": "4+"}, ("flexible-changed", True)),
            ({"listeners": ["broker"]}, {"listeners": ["broker", "controller"]}, ("listener-added", True)),
            ({"listeners": ["broker", "controller"]}, {"listeners": ["broker"]}, ("listener-removed", False)),
            ({"latestVersionUnstable": True}, {}, ("stability-changed", True)),
            ({}, {"latestVersionUnstable": True}, ("stability-changed", False)),
            ({"deprecatedVersions": "0-1"}, {}, ("deprecated-changed", True)),
        ],
    )
    def test_a_change_of_it(
        self, old: dict[str, Any], new: dict[str, Any], expected: tuple[str, bool]
    ) -> None:
        found = [(rule, compatible) for rule, path, compatible in changes_of(old, new) if not path]
        assert expected in found
        assert [compatible for rule, compatible in found if rule != expected[0]] in ([], [True])

    def test_a_new_version_may_be_unstable(self) -> None:
        old, new = {"validVersions": "0-2"}, {"latestVersionUnstable": True}
        assert changes_of(old, new) == [("versions-added", "", True), ("stability-changed", "", True)]

    def test_no_version_left_says_it_once(self) -> None:
        new = {"validVersions": "none", "fields": None, "flexibleVersions": None}
        assert changes_of({}, new) == [("versions-removed", "", False)]

    def test_bytes_that_no_rule_explains(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(messages, "compare_structs", lambda *_: ())
        assert changes_of({}, fields(field(type="int64"))) == [("bytes-changed", "", False)]


class TestFields:
    def test_new_in_a_new_version(self) -> None:
        new = {"validVersions": "0-4"} | fields(field(), field(name="More", versions="4+"))
        assert changes_of({}, new) == [("versions-added", "", True), ("field-added", "More", True)]

    def test_new_in_a_released_version(self) -> None:
        found = changes({}, fields(field(), field(name="More", versions="2+")))
        assert [(each.rule, each.compatible, each.versions) for each in found] == [
            ("field-added", False, (2, 3))
        ]
        assert found[0].text == "added: int32, versions 2+; breaks versions 2-3"

    def test_new_in_a_version_that_was_not_released(self) -> None:
        old = {"latestVersionUnstable": True}
        found = changes(old, old | fields(field(), field(name="More", versions="3+")))
        assert [(each.compatible, each.versions) for each in found] == [(True, (3,))]
        assert found[0].text.endswith("; version 3 was not released")

    def test_the_response_of_an_unstable_request_is_not_released_either(self) -> None:
        request = sample(latestVersionUnstable=True)
        response = {"type": "response", "name": "SampleResponse"}
        old = [request, sample(**response)]
        new = [request, sample(**response, fields=[field(type="int64")])]
        broken = compare(old, new).messages[0]
        assert [change.versions for change in broken.changes] == [(0, 1, 2, 3)]
        assert not broken.compatible
        new = [request, sample(**response, fields=[field(), field(name="More", versions="3+")])]
        assert compare(old, new).compatible

    def test_gone_from_a_new_version(self) -> None:
        old = fields(field(), field(name="More"))
        new = {"validVersions": "0-4"} | fields(field(), field(name="More", versions="0-3"))
        assert changes_of(old, new) == [
            ("versions-added", "", True),
            ("field-versions-changed", "More", True),
        ]

    @pytest.mark.parametrize("versions", ["0-2", "1+", None])
    def test_gone_from_a_released_version(self, versions: str | None) -> None:
        rest = [] if versions is None else [field(name="More", versions=versions)]
        rule = "field-removed" if versions is None else "field-versions-changed"
        assert changes_of(fields(field(), field(name="More")), fields(field(), *rest)) == [
            (rule, "More", False)
        ]

    def test_gone_with_its_versions(self) -> None:
        old = fields(field(), field(name="More", versions="0-1"))
        assert changes_of(old, {"validVersions": "2-3"}) == [
            ("versions-removed", "", False),
            ("field-removed", "More", True),
        ]

    def test_another_name_for_the_same_place(self) -> None:
        assert changes_of({}, fields(field(name="Second"))) == [("field-renamed", "Second", True)]
        assert changes_of(fields(field(), tagged()), fields(field(), tagged(name="Other"))) == [
            ("field-renamed", "Other", True)
        ]

    def test_another_name_while_the_old_one_goes_to_a_new_version(self) -> None:
        new = {"validVersions": "0-4"} | fields(
            field(name="Legacy", versions="0-3"), field(type="int64", versions="4+")
        )
        assert changes_of({}, new) == [
            ("versions-added", "", True),
            ("field-added", "First", True),
            ("field-renamed", "Legacy", True),
            ("field-versions-changed", "Legacy", True),
        ]

    @pytest.mark.parametrize("other", [{"type": "int64"}, {"type": "string"}, {"type": "[]int32"}])
    def test_another_name_and_type_is_another_field(self, other: dict[str, Any]) -> None:
        assert changes_of({}, fields(field(name="Second", **other))) == [
            ("field-removed", "First", False),
            ("field-added", "Second", False),
        ]

    def test_another_order(self) -> None:
        two = [field(), field(name="Second")]
        found = changes(fields(*two), fields(*reversed(two)))
        assert [(each.rule, each.path, each.compatible) for each in found] == [
            ("fields-reordered", "", False)
        ]
        assert found[0].versions == (0, 1, 2, 3)

    def test_another_order_of_tagged_fields(self) -> None:
        two = [tagged(), tagged(name="Other", tag=1)]
        assert changes_of(fields(field(), *two), fields(field(), *reversed(two))) == []

    def test_a_common_struct_instead_of_one_in_place(self) -> None:
        new = fields(field(type="Part")) | {
            "commonStructs": [{"name": "Part", "versions": "0+", "fields": PART}]
        }
        assert changes_of(fields(struct()), new) == []
        assert changes_of(fields(struct(name="A")), new | fields(field(name="A", type="Part"))) == []

    def test_inside_structs(self) -> None:
        inner = [PART[0], field(name="Text", type="bytes")]
        for array in ("", "[]"):
            old, new = fields(struct(type=f"{array}Part")), fields(struct(type=f"{array}Part", fields=inner))
            assert changes_of(old, new) == [("type-changed", "First.Text", False)]

    def test_inside_a_struct_that_is_new_as_well(self) -> None:
        old = fields(field(), struct(name="Old", versions="0-1"))
        new = fields(field(), struct(name="Old", versions="0-1", fields=[PART[0]]))
        found = changes(old, new)
        assert [(each.rule, each.path, each.versions) for each in found] == [
            ("field-removed", "Old.Text", (0, 1))
        ]


class TestTypes:
    @pytest.mark.parametrize("kind", ["int8", "int64", "uint32", "string", "uuid", "[]int32"])
    def test_another_type(self, kind: str) -> None:
        found = diff({}, fields(field(type=kind)))
        assert [each.rule for each in found.messages[0].changes] == ["type-changed"]
        assert not found.compatible
        assert found.messages[0].different_bytes == (0, 1, 2, 3)

    def test_only_where_it_is_present(self) -> None:
        old = {"validVersions": "0-1"} | fields(field(), field(name="More", versions="2+"))
        new = fields(field(), field(name="More", type="int64", versions="2+"))
        assert changes_of(old, new) == [("versions-added", "", True), ("type-changed", "More", True)]

    def test_another_name_of_a_struct(self) -> None:
        assert changes_of(fields(struct()), fields(struct(type="Piece"))) == [
            ("struct-renamed", "First", True)
        ]

    def test_numbers_in_an_array_become_structs_with_one_number(self) -> None:
        boxed = field(type="[]Box", fields=[field(name="Number")])
        old, new = fields(field(type="[]int32")), fields(boxed)
        plain = {"flexibleVersions": "none"}
        found = changes(old | plain, new | plain)
        assert [(each.rule, each.compatible) for each in found] == [("type-changed", True)]
        assert found[0].text == "type []int32 -> []Box; the bytes are the same"
        # In a flexible version every struct has a section of tagged fields.
        assert [each.versions for each in changes(old, new)] == [(2, 3)]

    def test_bytes_and_records_are_one_on_the_wire(self) -> None:
        old, new = fields(field(type="bytes")), fields(field(type="records"))
        # Bytes are empty by default, and records null.
        assert changes_of(old, new) == [("type-changed", "First", True), ("default-changed", "First", False)]
        assert diff(old, new).same_bytes
        old = fields(field(type="bytes", nullableVersions="0+", default="null"))
        new = fields(field(type="records", nullableVersions="0+"))
        assert changes_of(old, new) == [("type-changed", "First", True)]

    def test_a_struct_and_what_it_is_made_of_have_the_same_default(self) -> None:
        old = fields(struct(fields=[field(name="Number", default="7")])) | {"flexibleVersions": "none"}
        for default, rules in (("7", ["type-changed"]), ("8", ["type-changed", "default-changed"])):
            new = fields(field(type="int32", default=default)) | {"flexibleVersions": "none"}
            assert [rule for rule, _, _ in changes_of(old, new)] == rules

    def test_an_override_of_flexible_versions(self) -> None:
        old, new = fields(field(type="string")), fields(field(type="string", flexibleVersions="none"))
        found = diff(old, new)
        assert [(each.rule, each.versions) for each in found.messages[0].changes] == [
            ("flexible-changed", (2, 3))
        ]
        assert found.messages[0].different_bytes == (2, 3)


class TestTags:
    def test_a_tagged_field_may_come_to_a_released_version(self) -> None:
        found = diff({}, fields(field(), tagged()))
        assert [(each.rule, each.compatible) for each in found.messages[0].changes] == [("field-added", True)]
        assert found.same_bytes

    def test_and_go(self) -> None:
        found = diff(fields(field(), tagged()), {})
        assert [(each.rule, each.compatible) for each in found.messages[0].changes] == [
            ("field-removed", True)
        ]
        assert found.same_bytes

    def test_but_its_tag_is_never_used_again(self) -> None:
        new = fields(field(), tagged(name="Other", type="string"))
        assert changes_of(fields(field(), tagged()), new) == [
            ("field-removed", "Extra", True),
            ("tag-reused", "Other", False),
        ]
        later = {"validVersions": "0-4"} | fields(
            field(), tagged(name="Other", type="string", versions="4+", taggedVersions="4+")
        )
        assert changes_of(fields(field(), tagged()), later)[-1] == ("tag-reused", "Other", False)

    def test_another_tag(self) -> None:
        old = fields(field(), tagged(), tagged(name="Other", tag=1))
        new = fields(field(), tagged(tag=1), tagged(name="Other", tag=0))
        assert changes_of(old, new) == [("tag-changed", "Extra", False), ("tag-changed", "Other", False)]

    @pytest.mark.parametrize(
        ("old", "new", "versions"),
        [
            ({"tag": None, "taggedVersions": None}, {}, (2, 3)),
            ({}, {"tag": None, "taggedVersions": None}, (2, 3)),
            ({}, {"taggedVersions": "3+"}, (2,)),
            ({"taggedVersions": "3+"}, {}, (2,)),
            ({"versions": "3+", "taggedVersions": "3+"}, {}, (2,)),
            ({}, {"versions": "3+", "taggedVersions": "3+"}, (2,)),
        ],
    )
    def test_with_a_tag_where_it_had_none_or_the_other_way_round(
        self, old: dict[str, Any], new: dict[str, Any], versions: tuple[int, ...]
    ) -> None:
        found = diff(fields(field(), tagged(**old)), fields(field(), tagged(**new)))
        assert [each.versions for each in found.messages[0].changes] == [versions]
        assert not found.compatible
        assert found.messages[0].different_bytes == versions

    def test_in_more_released_versions_than_before(self) -> None:
        """Readers that know a tag refuse it at versions that lack it."""
        old = fields(field(), tagged(versions="3+", taggedVersions="3+"))
        assert changes_of(old, fields(field(), tagged())) == [("tag-changed", "Extra", False)]

    def test_a_tag_at_a_released_version_for_a_field_that_older_ones_have_without(self) -> None:
        old = fields(field(), field(name="Extra", versions="0-1"))
        new = fields(field(), field(name="Extra", tag=0, taggedVersions="2+"))
        assert changes_of(old, new) == [("tag-changed", "Extra", True)]


class TestNullsAndDefaults:
    @pytest.mark.parametrize(("old", "new"), [("0+", None), (None, "0+"), ("1+", "0+"), ("0+", "2+")])
    def test_nullable_at_other_released_versions(self, old: str | None, new: str | None) -> None:
        found = changes_of(
            fields(field(type="string", nullableVersions=old)),
            fields(field(type="string", nullableVersions=new)),
        )
        assert found == [("nullable-changed", "First", False)]

    def test_nullable_from_a_new_version_on(self) -> None:
        new = {"validVersions": "0-4"} | fields(field(type="string", nullableVersions="4+"))
        assert changes_of(fields(field(type="string")), new) == [
            ("versions-added", "", True),
            ("nullable-changed", "First", True),
        ]

    def test_a_struct_that_may_be_null_has_a_byte_more(self) -> None:
        assert not diff(fields(struct()), fields(struct(nullableVersions="0+"))).same_bytes
        text = fields(field(type="string")), fields(field(type="string", nullableVersions="0+"))
        assert diff(*text).same_bytes

    @pytest.mark.parametrize(
        ("kind", "old", "new"),
        [("int32", None, "1"), ("int32", "-1", None), ("bool", "false", "true"), ("string", "", "a")],
    )
    def test_another_default(self, kind: str, old: str | None, new: str | None) -> None:
        found = changes_of(fields(field(type=kind, default=old)), fields(field(type=kind, default=new)))
        assert found == [("default-changed", "First", False)]

    def test_null_instead_of_empty(self) -> None:
        nullable = {"type": "string", "nullableVersions": "0+"}
        new = fields(field(**nullable, default="null"))
        assert changes_of(fields(field(**nullable)), new) == [("default-changed", "First", False)]

    @pytest.mark.parametrize(
        ("kind", "old", "new"),
        [("int32", "0x10", "16"), ("int32", None, "0"), ("bool", "True", True), ("float64", "1", "1.0")],
    )
    def test_the_same_default_written_in_another_way(self, kind: str, old: object, new: object) -> None:
        assert changes_of(fields(field(type=kind, default=old)), fields(field(type=kind, default=new))) == []

    def test_the_default_of_a_field_that_was_not_released(self) -> None:
        old = {"latestVersionUnstable": True} | fields(field(), field(name="More", versions="3+"))
        new = {"latestVersionUnstable": True} | fields(
            field(), field(name="More", versions="3+", default="1")
        )
        assert changes_of(old, new) == [("default-changed", "More", True)]

    def test_the_default_decides_whether_a_tagged_field_is_written(self) -> None:
        assert not diff(fields(field(), tagged()), fields(field(), tagged(default="1"))).same_bytes
        assert diff({}, fields(field(default="1"))).same_bytes


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ({}, {"ignorable": True}, "ignorable false -> true"),
        ({"entityType": "brokerId"}, {}, "entityType brokerId -> none"),
        ({"type": "bytes"}, {"type": "bytes", "zeroCopy": True}, "zeroCopy false -> true"),
    ],
)
def test_attributes_that_are_not_on_the_wire_may_change(
    old: dict[str, Any], new: dict[str, Any], text: str
) -> None:
    found = diff(fields(field(**old)), fields(field(**new)))
    assert [change.text for change in found.messages[0].changes] == [text]
    assert found.compatible
    assert found.same_bytes


def test_map_keys_may_change() -> None:
    inner = [field(name="Number", mapKey=True), PART[1]]
    assert changes_of(fields(struct(type="[]Part")), fields(struct(type="[]Part", fields=inner))) == [
        ("mapKey-changed", "First.Number", True)
    ]
