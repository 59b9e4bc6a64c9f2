"""The meaning of each part of franz-go's definition language in Kafka's terms."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from pathlib import Path

import pytest

from codegen.emit.module import emit_module
from codegen.emit.plan import plan
from codegen.franz.build import singular
from codegen.schema.errors import SchemaError
from codegen.schema.model import ErrorNote, Field, Type
from codegen.schema.sources import read_schemas
from codegen.schema.versions import ALL, NONE, Versions
from kraft_wire.protocol.errors import EncodeError
from tests.codegen.franz_samples import HEADER, generated, messages, only_field, only_message

FLEXIBLE = Versions(3, 32767)
NOT_FLEXIBLE = "SampleRequest => key 900, max version 5"


class TestHeaders:
    def test_a_request_and_its_response(self) -> None:
        request, response = messages(
            "PokeRequest => key 7, max version 4, flexible v2+, admin\n  Hard: bool\n\n"
            "PokeResponse =>\n  ErrorCode: int16\n"
        )
        for message, name, kind in (
            (request, "PokeRequest", "request"),
            (response, "PokeResponse", "response"),
        ):
            assert (message.name, message.kind, message.api_key) == (name, kind, 7)
            assert message.versions == Versions(0, 4)
            assert message.flexible == Versions(2, 32767)

    @pytest.mark.parametrize(
        ("where", "whom"),
        [
            ("admin", "the controller"),
            ("group coordinator", "the group's coordinator"),
            ("txn coordinator", "the transaction's coordinator"),
            ("share coordinator", "the share group's coordinator"),
        ],
    )
    def test_where_a_request_goes_is_a_note(self, where: str, whom: str) -> None:
        message = only_message(
            "Hard: bool", header=f"PokeRequest => key 7, max version 0, {where}, flexible v0+"
        )
        assert message.notes.text == (f"It goes to {whom}.",)
        assert message.flexible == ALL

    def test_a_request_that_is_never_flexible(self) -> None:
        assert only_message("Hard: bool", header=NOT_FLEXIBLE).flexible == NONE

    def test_messages_without_fields(self) -> None:
        request, response = messages("PokeRequest => key 7, max version 0\n\nPokeResponse =>\n")
        assert request.fields == response.fields == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[
            (base, Field("It", Type(base), ALL))
            for base in (
                "bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64",
                "uuid", "string", "bytes",
            )
        ],
        ("nullable-string", Field("It", Type("string"), ALL, nullable=ALL)),
        ("nullable-bytes", Field("It", Type("bytes"), ALL, nullable=ALL)),
        ("nullable-string-v2+", Field("It", Type("string"), ALL, nullable=Versions(2, 32767))),
        ("[int32]", Field("It", Type("int32", is_array=True), ALL)),
        ("nullable[uuid]", Field("It", Type("uuid", is_array=True), ALL, nullable=ALL)),
        (
            "nullable-v4+[string]",
            Field("It", Type("string", is_array=True), ALL, nullable=Versions(4, 32767)),
        ),
        ("int32(-1)", Field("It", Type("int32"), ALL, default="-1")),
        ("int32(0x7fffffff)", Field("It", Type("int32"), ALL, default="0x7fffffff")),
        ("bool(true)", Field("It", Type("bool"), ALL, default="true")),
        ("float64(0.5)", Field("It", Type("float64"), ALL, default="0.5")),
        ("nullable-string(null)", Field("It", Type("string"), ALL, nullable=ALL, default="null")),
        ("nullable-bytes(null)", Field("It", Type("bytes"), ALL, nullable=ALL, default="null")),
        ("nullable[int8](null)", Field("It", Type("int8", is_array=True), ALL, nullable=ALL, default="null")),
        ("int8 // v1+", Field("It", Type("int8"), Versions(1, 32767))),
        ("int8 // v2-v4", Field("It", Type("int8"), Versions(2, 4))),
        ("int8 // v0-v0", Field("It", Type("int8"), Versions(0, 0))),
        ("int64(-1) // v1+", Field("It", Type("int64"), Versions(1, 32767), default="-1")),
        (
            "nullable-string-v2+ // v1-v3",
            Field("It", Type("string"), Versions(1, 3), nullable=Versions(2, 3)),
        ),
        ("int8 // tag 0", Field("It", Type("int8"), FLEXIBLE, tag=0, tagged=FLEXIBLE)),
        (
            "int8 // v4+, tag 0",
            Field("It", Type("int8"), Versions(4, 32767), tag=0, tagged=Versions(4, 32767)),
        ),
        (
            "nullable-string // tag 0",
            Field("It", Type("string"), FLEXIBLE, FLEXIBLE, default="null", tag=0, tagged=FLEXIBLE),
        ),
        (
            "nullable[int8] // tag 0",
            Field(
                "It", Type("int8", is_array=True), FLEXIBLE, FLEXIBLE,
                default="null", tag=0, tagged=FLEXIBLE,
            ),
        ),
        ("[uuid] // tag 0", Field("It", Type("uuid", is_array=True), FLEXIBLE, tag=0, tagged=FLEXIBLE)),
    ],
)  # fmt: skip
def test_a_type(text: str, expected: Field) -> None:
    assert only_field(f"It: {text}") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TimeoutMillis", Field("TimeoutMillis", Type("int32"), ALL, default="15000")),
        ("TimeoutMillis(60000)", Field("TimeoutMillis", Type("int32"), ALL, default="60000")),
        (
            "TimeoutMillis(60000) // v1+",
            Field("TimeoutMillis", Type("int32"), Versions(1, 32767), default="60000"),
        ),
        ("TimeoutMillis: int32(7)", Field("TimeoutMillis", Type("int32"), ALL, default="7")),
        ("ThrottleMillis", Field("ThrottleMillis", Type("int32"), ALL)),
        ("ThrottleMillis(4)", Field("ThrottleMillis", Type("int32"), ALL)),
        ("ThrottleMillis // v2+", Field("ThrottleMillis", Type("int32"), Versions(2, 32767))),
        ("ThrottleMillis(4) // v2+", Field("ThrottleMillis", Type("int32"), Versions(2, 32767))),
    ],
)
def test_a_shorthand(text: str, expected: Field) -> None:
    assert only_field(text) == expected


class TestStructs:
    def test_an_array_of_structs(self) -> None:
        found = only_field(
            "Topics: [=>] // v1+", "  Topic: string", "  Partitions: [=>]", "    Partition: int32"
        )
        partition = Field("Partition", Type("int32"), ALL)
        partitions = Field(
            "Partitions",
            Type("struct", "SampleRequestTopicPartition", is_array=True),
            ALL,
            fields=(partition,),
        )
        assert found == Field(
            "Topics", Type("struct", "SampleRequestTopic", is_array=True), Versions(1, 32767),
            fields=(Field("Topic", Type("string"), ALL), partitions),
        )  # fmt: skip

    def test_fields_after_a_struct_belong_to_what_is_around_it(self) -> None:
        message = only_message("Outer: =>", "  Inner: =>", "    Deep: int8", "  Middle: int8", "Last: int8")
        assert [field.name for field in message.fields] == ["Outer", "Last"]
        assert [field.name for field in message.fields[0].fields] == ["Inner", "Middle"]

    def test_one_struct(self) -> None:
        found = only_field("State: => // tag 0", "  ID: int32(-1)")
        assert found.type == Type("struct", "SampleRequestState")
        assert (found.tag, found.nullable, found.default) == (0, NONE, None)

    def test_one_struct_that_may_be_null(self) -> None:
        found = only_field("State: nullable=>", "  ID: int32(-1)")
        assert (found.type, found.nullable, found.default) == (
            Type("struct", "SampleRequestState"),
            ALL,
            "null",
        )

    def test_an_array_of_structs_that_may_be_null(self) -> None:
        found = only_field("Topics: nullable-v1+[=>]", "  Topic: string")
        assert (found.nullable, found.default) == (Versions(1, 32767), None)

    @pytest.mark.parametrize("text", ["[=>Entry]", "[=>]Entry"])
    def test_a_name_for_the_elements(self, text: str) -> None:
        assert only_field(f"Entries: {text}", "  Key: string").type.struct == "SampleRequestEntry"

    @pytest.mark.parametrize(
        ("plural", "one"),
        [
            ("Topics", "Topic"),
            ("Entries", "Entry"),
            ("Batches", "Batch"),
            ("Addresses", "Address"),
            ("Indexes", "Index"),
            ("Responses", "Response"),
            ("Replicas", "Replica"),
            ("Status", "Status"),
            ("Access", "Access"),
            ("Data", "Data"),
        ],
    )
    def test_the_names_of_elements(self, plural: str, one: str) -> None:
        assert singular(plural) == one

    def test_named_structs_are_shared(self) -> None:
        request, response = messages(
            "// A place.\nPlace => not top level, no encoding, flexible v0+\n"
            "  Host: string\n  Rack: string // v2+\n\n"
            "Way => not top level, flexible v0+\n  Places: [Place]\n\n"
            "PokeRequest => key 7, max version 4, flexible v2+\n  At: Place\n  Ways: nullable[Way]\n\n"
            "PokeResponse =>\n  From: [Place]\n"
        )
        at, ways = request.fields
        assert at == Field("At", Type("struct", "Place"), ALL)
        assert ways == Field("Ways", Type("struct", "Way", is_array=True), ALL, nullable=ALL)
        assert [struct.name for struct in request.common_structs] == ["Place", "Way"]
        assert [struct.name for struct in response.common_structs] == ["Place"]
        place = response.common_structs[0]
        assert place.fields == (
            Field("Host", Type("string"), ALL),
            Field("Rack", Type("string"), Versions(2, 32767)),
        )
        assert place.notes.text == ("A place.",)

    def test_records_may_use_what_messages_may_not(self) -> None:
        (message,) = messages(
            "Record => not top level\n  Length: varint\n  Key: varint-bytes\n  Headers: varint[int8]\n"
            "  Rest: length-field-minus => Length - 49\n\n"
            "Entry => not top level, with version field\n  Version: int16\n\n" + HEADER + "\n  Hard: bool\n"
        )
        assert message.common_structs == ()


class TestEnums:
    TEXT = (
        "// Colours.\nColour int8 (\n  // Like blood.\n  1: RED\n  2: GREEN\n)\n\n"
        "State int16 camelcase (\n  0: Empty\n)\n\n"
        + HEADER
        + "\n  // The paint.\n  Paint: enum-Colour(2) // v1+\n"
        "  More: [enum-State]\n"
    )

    def test_an_enum_is_a_number_on_the_wire(self) -> None:
        paint, more = messages(self.TEXT)[0].fields
        assert paint == Field("Paint", Type("int8"), Versions(1, 32767), default="2")
        assert more.type == Type("int16", is_array=True)

    def test_its_words_are_a_note(self) -> None:
        paint, more = messages(self.TEXT)[0].fields
        assert paint.notes.text == ("The paint.", "Colour: 1 RED, 2 GREEN.")
        assert more.notes.text == ("State: 0 Empty.",)


class TestFolders:
    def test_a_file_may_use_what_earlier_ones_define(self, tmp_path: Path) -> None:
        (tmp_path / "zoo").write_text(
            "ZooRequest => key 1, max version 0\n  At: Place\n  Paint: enum-Colour\n"
        )
        (tmp_path / "place").write_text("Place => not top level\n  Host: string\n  Paint: enum-Colour\n")
        (tmp_path / "enums").write_text("Colour int8 (\n  1: RED\n)\n")
        (tmp_path / "README.md").write_text("not a definition")
        (source,) = read_schemas(tmp_path)
        assert (source.file, source.message.name) == ("zoo", "ZooRequest")

    def test_a_name_has_one_meaning_in_all_files(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("// One.\nPokeRequest => key 1, max version 0\n")
        (tmp_path / "b").write_text("\n\nPokeRequest => key 2, max version 0\n")
        with pytest.raises(SchemaError, match=r"^b:3: PokeRequest is defined in a:2 already$"):
            read_schemas(tmp_path)

    def test_a_file_that_is_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"\xff\xfe")
        with pytest.raises(SchemaError, match=r"^a: can't be read"):
            read_schemas(tmp_path)


class TestNotes:
    RESPONSE = (
        "SampleRequest => key 900, max version 5\n\n"
        "// How it went.\n//\n// Errors of all kinds:\n//\n"
        "// - NOT_CONTROLLER (version 0+)\n// - STALE_BROKER_EPOCH\n"
        "SampleResponse =>\n"
        "  // What went wrong,\n  // if anything.\n  //\n"
        "  // TOPIC_AUTHORIZATION_FAILED is returned if the client\n  // may not read.\n  //\n"
        "  // UNKNOWN_TOPIC_ID: no topic has\n  // this id, see CLUSTER_ACTION.\n  //\n"
        "  // Later versions say KAFKA_STORAGE_ERROR or NOT_CONTROLLER.\n"
        "  ErrorCode: int16\n"
        "  // Present with UNKNOWN_TOPIC_ID.\n"
        "  ErrorMessage: nullable-string\n"
        "  Plain: int8\n"
    )

    def test_errors_of_a_field(self) -> None:
        code = messages(self.RESPONSE)[1].fields[0]
        assert code.notes.text == (
            "What went wrong, if anything.",
            "Later versions say KAFKA_STORAGE_ERROR or NOT_CONTROLLER.",
        )
        assert code.notes.errors == (
            ErrorNote("TOPIC_AUTHORIZATION_FAILED", "if the client may not read."),
            ErrorNote("UNKNOWN_TOPIC_ID", "no topic has this id, see CLUSTER_ACTION."),
            ErrorNote("KAFKA_STORAGE_ERROR"),
            ErrorNote("NOT_CONTROLLER"),
        )

    def test_errors_of_a_response(self) -> None:
        response = messages(self.RESPONSE)[1]
        assert response.notes.text == ("How it went.", "Errors of all kinds:")
        assert response.notes.errors == (
            ErrorNote("NOT_CONTROLLER", "(version 0+)"),
            ErrorNote("STALE_BROKER_EPOCH"),
        )

    def test_other_fields_have_text_only(self) -> None:
        _, message, plain = messages(self.RESPONSE)[1].fields
        assert (message.notes.text, message.notes.errors) == (("Present with UNKNOWN_TOPIC_ID.",), ())
        assert (plain.notes.text, plain.notes.errors) == ((), ())

    def test_a_request_returns_no_errors(self) -> None:
        found = only_field("// NOT_CONTROLLER: somebody said so.", "ErrorCode: int16")
        assert (found.notes.text, found.notes.errors) == (("NOT_CONTROLLER: somebody said so.",), ())

    def test_a_note_above_a_blank_line_is_about_nothing(self) -> None:
        (message,) = messages("// Some words.\n\n// The request.\n" + HEADER + "\n  Hard: bool\n")
        assert message.notes.text == ("The request.",)

    def test_notes_are_not_part_of_a_messages_identity(self) -> None:
        assert only_message("// A note.", "Hard: bool") == only_message("Hard: bool")

    def test_docstrings_show_them(self) -> None:
        (text,) = _docstrings(
            "// One.",
            "//",
            '// Two with """quotes""" and a \\back\\slash\\',
            "Hard: bool",
        )
        assert text == 'bool, versions 0 to 5.\n\nOne.\n\nTwo with """quotes""" and a \\back\\slash\\\n'

    def test_docstrings_are_folded(self) -> None:
        (text,) = _docstrings("//" + " word" * 60, "Hard: bool")
        assert len(text.split("\n")) == 6
        assert text.replace("\n", " ").split()[-60:] == ["word"] * 60


def _docstrings(*lines: str) -> list[str]:
    """Return the docstrings of the generated class's fields."""
    tree = ast.parse(emit_module(plan(only_message(*lines)), "a sample"))
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    values = [after for field, after in pairwise(cls.body) if isinstance(field, ast.AnnAssign)]
    return [
        inspect.cleandoc(str(ast.literal_eval(each.value))) + "\n"
        for each in values
        if isinstance(each, ast.Expr)
    ]


class TestGenerated:
    """Nothing of the model's meaning is lost in the generated class."""

    def test_a_field_that_a_version_lacks(self) -> None:
        cls = generated("First: int8", "Second: int8(9) // v1+").SampleRequest
        assert cls().second == 9
        assert cls(first=1).encode(0) == b"\x01"
        assert cls(first=1, second=2).encode(1) == b"\x01\x02"

    def test_tags(self) -> None:
        cls = generated("First: int8", "Extra: int32(-1) // v4+, tag 0").SampleRequest
        assert cls(extra=-1).encode(4) == b"\x00\x00"
        assert cls(extra=7).encode(4) == b"\x00\x01\x00\x04\x00\x00\x00\x07"

    def test_a_timeout(self) -> None:
        assert generated("TimeoutMillis(60000)").SampleRequest().encode(0) == b"\x00\x00\xea\x60"

    def test_an_array_that_becomes_nullable(self) -> None:
        cls = generated("Topics: nullable-v1+[=>]", "  Topic: string").SampleRequest
        assert cls(topics=None).encode(1) == b"\xff\xff\xff\xff"
        assert cls.decode(b"\xff\xff\xff\xff", 1) == cls(topics=None)
        with pytest.raises(EncodeError, match="topics"):
            cls(topics=None).encode(0)
