"""Errors in definitions in franz-go's language name the file, the line and the problem."""

from __future__ import annotations

import re

import pytest

from codegen.schema.errors import SchemaError
from tests.codegen.franz_samples import FILE, HEADER, messages

STRUCT = "Place => not top level, flexible v0+\n  Host: string\n\n"


def refused(text: str) -> str:
    """Return the error of a file that starts with a blank line, so that no line's number equals its index."""
    with pytest.raises(SchemaError) as caught:
        messages("\n" + text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("PokeRequest", 2, "'PokeRequest' does not start a definition; write Name =>"),
        ("Poke Request => key 1, max version 0", 2, "does not start a definition; write Name =>"),
        ("PokeRequest => key 1", 2, "a request is written NameRequest => key N, max version N"),
        ("PokeRequest => max version 1", 2, "a request is written NameRequest => key N, max version N"),
        ("Poke => key 1, max version 1", 2, "a request is written NameRequest => key N, max version N"),
        ("PokeRequest => key 1, max version 32767", 2, "keys and versions are below 32767"),
        ("PokeRequest => key 123456, max version 1", 2, "'key 123456' is not an attribute of a request"),
        ("PokeRequest => key one, max version 1", 2, "'key one' is not an attribute of a request"),
        ("PokeRequest => key 1, max version 1, urgent", 2, "'urgent' is not an attribute of a request"),
        (
            "PokeRequest => key 1, max version 1, flexible v2",
            2,
            "'flexible v2' is not an attribute of a request",
        ),
        (
            "PokeRequest => key 1, max version 1, no encoding",
            2,
            "'no encoding' is not an attribute of a request",
        ),
        ("Place => not top level, key 1", 2, "'key 1' is not an attribute of a struct"),
        ("Place => not top level, admin", 2, "'admin' is not an attribute of a struct"),
        ("Place =>", 2, "Place => must be followed by a key or 'not top level'"),
        ("PokeResponse =>", 2, "PokeResponse does not directly follow PokeRequest"),
        (
            "PokeRequest => key 1, max version 0\n\nPlace => not top level\n\nPokeResponse =>",
            6,
            "PokeResponse does not directly follow PokeRequest",
        ),
        (
            "PokeRequest => key 1, max version 0\n\n" * 2,
            4,
            "PokeRequest is defined in sample:2 already",
        ),
    ],
)
def test_headers(text: str, line: int, problem: str) -> None:
    error = refused(text)
    assert error.startswith(f"{FILE}:{line}: ")
    assert error.endswith(problem)


@pytest.mark.parametrize(
    ("body", "line", "problem"),
    [
        ("  First: int8 ", 3, "there is a tab, or a space at the end"),
        ("\tFirst: int8", 3, "there is a tab, or a space at the end"),
        ("   First: int8", 3, "indented by 3 spaces; each level has 2"),
        (
            "  First: int8\n      Deep: int8",
            4,
            "indented deeper than the fields around it, which have 4 spaces",
        ),
        ("    First: int8", 3, "indented deeper than the fields around it, which have 2 spaces"),
        ("  First: int8\n  // A note.", 4, "a note stands above what it is about, and below this is nothing"),
        (
            "  First: =>\n    Deep: int8\n    // A note.\n  Second: int8",
            5,
            "a note stands above what it is about, and below this is nothing",
        ),
        (
            "  First: int8\n    // A note.\n  Second: int8",
            4,
            "a note stands above what it is about, and below this is nothing",
        ),
        ("  First: int8\nPlace => not top level", 4, "a blank line is missing above this definition"),
        ("  First: int8\n    Deep: int8", 4, "First is not a struct defined here, so it has no fields"),
        ("  First: [=>]", 3, "the struct First has no fields"),
    ],
)  # fmt: skip
def test_lines(body: str, line: int, problem: str) -> None:
    assert refused(f"{HEADER}\n{body}") == f"{FILE}:{line}: {problem}"


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("First", "'First' is not a field; write Name: type"),
        ("First int8", "'First int8' is not a field; write Name: type"),
        ("First:int8", "'First:int8' is not a field; write Name: type"),
        ("First: int9", "'int9' is neither a type nor a struct that is defined above"),
        ("First: Place", "'Place' is neither a type nor a struct that is defined above"),
        ("First: [Place]", "'Place' is neither a type nor a struct that is defined above"),
        ("First: enum-Colour", "there is no enum 'Colour'"),
        ("First: [[int8]]", "arrays of arrays don't exist in Kafka's schemas"),
        ("First: [nullable-string]", "an array's elements are never null in Kafka's schemas"),
        ("First: [nullable=>]", "an array's elements are never null in Kafka's schemas"),
        ("First: [int8(1)]", "a default comes after the array, not in it"),
        ("First: [int8]Name", "'Name' names the struct of an array that isn't defined here, or twice"),
        (
            "First: nullable-v1[int8]",
            "'nullable-v1[int8]' is neither a type nor a struct that is defined above",
        ),
        ("First: nullable-int8", "'nullable-int8' is neither a type nor a struct that is defined above"),
        ("First: string(x)", "only numbers, bools and nullable types can have a default"),
        ("First: uuid(x)", "only numbers, bools and nullable types can have a default"),
        ("First: [int8](null)", "only numbers, bools and nullable types can have a default"),
        ("First: nullable-string(x)", "the only default that is possible here is null, not 'x'"),
        ("First: nullable[int8](0)", "the only default that is possible here is null, not '0'"),
        ("First: int8 // v1", "'v1' is not a mark of versions; write v1+, v3-v5, tag 0, or v1+, tag 0"),
        (
            "First: int8 // from v1",
            "'from v1' is not a mark of versions; write v1+, v3-v5, tag 0, or v1+, tag 0",
        ),
        ("First: int8 // v3-v2", "'v3-v2' is not a range within 0 to 32767"),
        ("First: int8 // v40000+", "'v40000+' is not a range within 0 to 32767"),
        ("First: int8 // v6+", "v6+ goes beyond max version 5 of SampleRequest"),
        ("First: int8 // v4-v6", "v4-6 goes beyond max version 5 of SampleRequest"),
        ("ThrottleMillis(x)", "'ThrottleMillis(x)' is not a field; write Name: type"),
    ],
)
def test_fields(field: str, problem: str) -> None:
    assert refused(f"{HEADER}\n  Zeroth: int8\n  {field}") == f"{FILE}:4: {problem}"


def test_a_shorthand_with_a_note() -> None:
    error = refused(f"{HEADER}\n  // As long as you like.\n  TimeoutMillis")
    assert error == f"{FILE}:4: TimeoutMillis can have neither notes nor fields, because its meaning is fixed"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("Colour (\n  1: RED\n)", 2, "'Colour (' is not an enum; write Name int8 ("),
        ("Colour string (\n  1: RED\n)", 2, "'Colour string (' is not an enum; write Name int8 ("),
        ("Colour int8 (\n  RED\n)", 3, "'RED' is not a value of an enum; write 1: WORD"),
        ("Colour int8 (\n  1: RED", 2, "enum Colour has no ')' below its values"),
        ("Colour int8 (\n)\n\nColour int8 (\n)", 5, "Colour is defined in sample:2 already"),
        (")", 2, "')' does not start a definition; write Name =>"),
    ],
)
def test_enums(text: str, line: int, problem: str) -> None:
    assert refused(text) == f"{FILE}:{line}: {problem}"


class TestWhatKafkaLacks:
    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("varint", "varint"),
            ("varlong", "varlong"),
            ("varint(3)", "varint"),
            ("varint-string", "varint-string"),
            ("varint-bytes", "varint-bytes"),
            ("varint[int8]", "varint"),
            ("[varint]", "varint"),
            ("length-field-minus => Length - 49", "length-field-minus"),
        ],
    )
    def test_types(self, text: str, what: str) -> None:
        problem = f"Kafka's schemas of requests and responses have nothing like {what}"
        assert refused(f"{HEADER}\n  Length: int32\n  First: {text}") == f"{FILE}:4: {problem}"

    def test_types_inside_a_named_struct(self) -> None:
        error = refused(f"Place => not top level, flexible v0+\n  X: varint\n\n{HEADER}\n  First: Place")
        assert error == f"{FILE}:3: Kafka's schemas of requests and responses have nothing like varint"

    def test_a_struct_with_versions_of_its_own(self) -> None:
        text = (
            "Place => not top level, with version field\n  Version: int16\n\n" + HEADER + "\n  First: Place"
        )
        assert (
            refused(text)
            == f"{FILE}:6: Place has a version field, which a struct inside a message can't have"
        )

    def test_a_struct_that_is_flexible_from_another_version(self) -> None:
        text = STRUCT.replace(", flexible v0+", "") + HEADER + "\n  First: Place"
        assert refused(text) == f"{FILE}:6: Place is never flexible, but SampleRequest is"


class TestRulesOfTheSchemaLanguage:
    """The rules of check.py, with the line of the field that breaks them."""

    def test_a_field_that_exists_twice(self) -> None:
        error = refused(f"{HEADER}\n  Outer: =>\n    First: int8\n    First: int8")
        assert error == f"{FILE}:3: SampleRequest.Outer: field First is specified twice"

    def test_a_tag_without_flexible_versions(self) -> None:
        error = refused("PokeRequest => key 1, max version 3\n  Zeroth: int8\n  First: int8 // tag 0")
        assert error.startswith(f"{FILE}:4: PokeRequest.First: ")
        assert "a tag without taggedVersions" in error

    def test_a_tag_before_the_flexible_versions(self) -> None:
        error = refused(f"{HEADER}\n  First: int8 // v2+, tag 0")
        assert error.startswith(f"{FILE}:3: SampleRequest.First: taggedVersions 2+ is not within")

    def test_a_tag_that_ends(self) -> None:
        error = refused(f"{HEADER}\n  First: int8 // v3-v4, tag 0")
        assert error == f"{FILE}:3: SampleRequest.First: taggedVersions 3-4 is not open-ended"

    def test_tags_with_a_gap(self) -> None:
        error = refused(f"{HEADER}\n  First: int8 // tag 1")
        assert re.match(rf"{FILE}:2: SampleRequest: tags \[1\] are not unique and contiguous from 0", error)

    def test_a_default_out_of_range(self) -> None:
        error = refused(f"{HEADER}\n  Zeroth: int8\n  First: int8(128)")
        assert error == f"{FILE}:4: SampleRequest.First: default '128' does not fit int8"

    def test_null_where_not_every_version_has_it(self) -> None:
        error = refused(f"{HEADER}\n  First: nullable-string-v1+(null)")
        assert error.startswith(f"{FILE}:3: SampleRequest.First: the default is null, but not every version")

    def test_inside_a_named_struct(self) -> None:
        error = refused(
            STRUCT + "Way => not top level, flexible v0+\n  Length: int8(300)\n\n" + HEADER + "\n  W: Way"
        )
        assert error == f"{FILE}:6: SampleRequest.Way.Length: default '300' does not fit int8"
