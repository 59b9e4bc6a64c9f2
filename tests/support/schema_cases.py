"""List schemas that break one rule of Kafka's schema language each, and some valid ones.

A case has the changes of a sample (schema_samples.message, or .field if the list's name ends in FIELDS) and a
part of the error's text.
"""

from __future__ import annotations

from typing import Any

from codegen.schema.model import FIXED_SIZES
from tests.support.schema_samples import field, nested

Change = dict[str, Any]
COORDINATOR_KEY: dict[str, Any] = {
    "type": "coordinator-key",
    "validVersions": "0",
    "flexibleVersions": "none",
}
INNER = [field(name="Inner", type="int8")]
TWO_TAGS = [field(name=name, tag=0, taggedVersions="2+") for name in ("A", "B")]

REFUSED_MESSAGES: list[tuple[Change, str]] = [
    ({"validVersions": "0+"}, "validVersions has no maximum"),
    ({"flexibleVersions": None}, "flexibleVersions is missing"),
    ({"flexibleVersions": "1-2"}, "neither none nor open-ended"),
    ({"type": "response", "listeners": ["broker"]}, "listeners are for requests only"),
    (
        {"type": "response", "latestVersionUnstable": True},
        "latestVersionUnstable is for requests only",
    ),
    ({"latestVersionUnstable": "yes"}, "latestVersionUnstable is 'yes' instead of true or false"),
    ({"listeners": ["zookeeper"]}, "listener 'zookeeper' is none of"),
    ({"fields": [field(mapKey=True)]}, "mapKey is not possible at the top level"),
    ({"type": None}, "type is missing"),
    ({"type": "REQUEST"}, "type 'REQUEST' is none of"),
    ({"validVersions": ""}, "validVersions is missing"),
    ({"apiKey": 32768}, "apiKey 32768 does not fit int16"),
    ({"type": "coordinator-value", "apiKey": None}, "a coordinator-value needs an apiKey"),
    (COORDINATOR_KEY | {"apiKey": None}, "a coordinator-key needs an apiKey"),
    (COORDINATOR_KEY | {"validVersions": "0-1"}, "a coordinator-key has validVersions 0"),
    (COORDINATOR_KEY | {"flexibleVersions": "0+"}, "a coordinator-key has flexibleVersions none"),
]
REFUSED_STRUCTS: list[tuple[Change, str]] = [
    (
        {
            "fields": [
                field(type="Part", fields=INNER),
                field(name="Second", type="[]Part", fields=INNER),
            ]
        },
        "struct Part is specified twice",
    ),
    (
        {
            "commonStructs": [{"name": "Part", "versions": "0+", "fields": INNER}],
            "fields": [field(type="Part", fields=INNER)],
        },
        "common struct Part is re-specified",
    ),
    (
        {"commonStructs": [{"name": "Part", "versions": "0+", "fields": INNER}] * 2},
        "struct Part is specified twice",
    ),
    (
        {"commonStructs": [{"name": "part", "versions": "0+", "fields": INNER}]},
        "does not start with a capital",
    ),
    ({"commonStructs": [{"name": "Part", "fields": INNER}]}, "versions is missing"),
    (
        {
            "commonStructs": [
                {"name": "Part", "versions": "0+", "fields": [field(type="[]Other")]},
                {"name": "Other", "versions": "0+", "fields": [field(type="[]Part")]},
            ]
        },
        "a common struct contains itself",
    ),
    (
        {
            "commonStructs": [{"name": "Part", "versions": "0+", "fields": [field(type="[]Part")]}],
            "fields": [field(type="Part")],
        },
        "a common struct contains itself",
    ),
    (
        {
            "commonStructs": [
                {"name": "Part", "versions": "0+", "fields": [field(type="Other", fields=INNER)]}
            ]
        },
        "Part.First: a struct inside a common struct is common too",
    ),
    (
        {
            "commonStructs": [{"name": "Part", "versions": "2+", "fields": INNER}],
            "fields": [field(type="[]Part", versions="1+")],
        },
        "SampleRequest.First: struct Part exists at versions 2+, not at all of 1-3",
    ),
    (
        {
            "commonStructs": [
                {"name": "Part", "versions": "1+", "fields": [field(type="Deep")]},
                {"name": "Deep", "versions": "2+", "fields": INNER},
            ]
        },
        "Part.First: struct Deep exists at versions 2+, not at all of 1-3",
    ),
    ({"fields": [field(), field()]}, "field First is specified twice"),
    (
        {"fields": [field(tag=1, taggedVersions="2+")]},
        "tags [1] are not unique and contiguous from 0",
    ),
    (
        {"fields": [field(type="[]Part", fields=TWO_TAGS)]},
        "SampleRequest.First: tags [0, 0] are not unique",
    ),
]
REFUSED_FIELDS: list[tuple[Change, str]] = [
    ({"name": "1st"}, "a field's name is a letter"),
    ({"name": "a_b"}, "a field's name is a letter"),
    ({"name": "\N{LATIN SMALL LETTER E WITH ACUTE}"}, "a field's name is a letter"),
    ({"name": None}, "name is missing"),
    ({"versions": None}, "versions is missing"),
    ({"type": None}, "type is missing"),
    ({"type": "int128"}, "'int128' is not a primitive type"),
    ({"type": "[][]int32"}, "arrays of arrays don't exist"),
    ({"type": "[]records"}, "arrays of records don't exist"),
    ({"color": "red"}, "SampleRequest.First: unknown key color"),
    ({"deprecatedVersions": "0"}, "SampleRequest.First: unknown key deprecatedVersions"),
    ({"fields": INNER}, "a field of type int32 has no fields"),
    *(({"type": kind, "nullableVersions": "0+"}, f"type {kind} is never null") for kind in FIXED_SIZES),
    ({"zeroCopy": True}, "zeroCopy is for bytes only"),
    ({"type": "[]bytes", "zeroCopy": True}, "zeroCopy is for bytes only"),
    ({"entityType": "brokerName"}, "entityType 'brokerName' is none of"),
    ({"entityType": "topicName"}, "entityType topicName is of type string, not int32"),
    ({"tag": 0}, "a tag without taggedVersions"),
    ({"taggedVersions": "2+"}, "taggedVersions without a tag"),
    ({"tag": -1, "taggedVersions": "2+"}, "tag -1 is negative"),
    ({"tag": 0, "taggedVersions": "2-3"}, "taggedVersions 2-3 is not open-ended"),
    ({"tag": 0, "taggedVersions": "2+", "versions": "3+"}, "is not within versions 3+"),
    ({"tag": 0, "taggedVersions": "1+"}, "taggedVersions 1+ is not within the flexible versions 2+"),
    (
        {"type": "string", "tag": 0, "taggedVersions": "2+", "nullableVersions": "3+"},
        "all tagged versions are nullable, or none",
    ),
    ({"tag": 0, "taggedVersions": "2+", "mapKey": True}, "a mapKey has no tag"),
    ({"type": "records", "tag": 0, "taggedVersions": "2+"}, "records have no tag"),
    ({"flexibleVersions": "none"}, "override is for string and bytes only"),
    ({"type": "[]string", "flexibleVersions": "none"}, "override is for string and bytes only"),
    ({"type": "records", "flexibleVersions": "none"}, "override is for string and bytes only"),
    (
        {"type": "string", "flexibleVersions": "1+"},
        "flexibleVersions 1+ is not within the message's 2+",
    ),
    ({"default": "x"}, "default 'x' is not an integer"),
    ({"default": "1e3"}, "default '1e3' is not an integer"),
    ({"default": "1_0"}, "default '1_0' is not an integer"),
    ({"default": " 5"}, "default ' 5' is not an integer"),
    ({"default": "-2147483649"}, "does not fit int32"),
    ({"default": "0x80000000"}, "does not fit int32"),
    ({"type": "int64", "default": "9223372036854775808"}, "does not fit int64"),
    ({"type": "int16", "default": "-32769"}, "does not fit int16"),
    ({"type": "int8", "default": "128"}, "default '128' does not fit int8"),
    ({"type": "uint16", "default": -1}, "default '-1' does not fit uint16"),
    ({"type": "uint32", "default": "0x100000000"}, "does not fit uint32"),
    ({"default": "null"}, "default 'null' is not an integer"),
    ({"type": "bool", "default": "yes"}, "default 'yes' is neither true nor false"),
    ({"type": "bool", "default": 1}, "default '1' is neither true nor false"),
    ({"type": "float64", "default": "one"}, "default 'one' is not a number"),
    ({"type": "float64", "default": "nan"}, "default 'nan' is not a number"),
    ({"type": "float64", "default": "inf"}, "default 'inf' is not a number"),
    ({"type": "float64", "default": "1_0"}, "default '1_0' is not a number"),
    ({"type": "uuid", "default": "AAAA"}, "is not a base64 id of 16 bytes"),
    ({"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAAAQ="}, "is not a base64 id of 16 bytes"),
    ({"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAA+A"}, "is not a base64 id of 16 bytes"),
    ({"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAAAQ!"}, "is not a base64 id of 16 bytes"),
    ({"type": "string", "default": "null"}, "the default is null, but not every version is nullable"),
    (
        {"type": "string", "default": "null", "nullableVersions": "1+"},
        "the default is null, but not every version is nullable",
    ),
    ({"type": "bytes", "default": "x"}, "default 'x' is neither empty nor null, as bytes needs"),
    ({"type": "[]int8", "default": "1"}, "default '1' is neither empty nor null, as array needs"),
    (
        {"type": "Part", "fields": INNER, "default": "{}"},
        "default '{}' is neither empty nor null, as struct",
    ),
]
ALLOWED_MESSAGES: list[Change] = [
    {"deprecatedVersions": "0-1"},
    {"flexibleVersions": "none"},
    {"flexibleVersions": "9+"},
    {"listeners": []},
    {"listeners": ["broker", "controller"]},
    {"latestVersionUnstable": True},
    {"latestVersionUnstable": None},
    {"validVersions": 3},
    {"fields": []},
    {"fields": None},
    {"type": "response", "listeners": []},
    {"type": "response", "latestVersionUnstable": False},
]
ALLOWED_FIELDS: list[Change] = [
    {"versions": None, "tag": 0, "taggedVersions": "2+"},
    {"type": "bool", "default": True},
    {"type": "bool", "default": "TRUE"},
    {"type": "int64", "default": "0x7fffffffffffffff"},
    {"type": "int16", "default": -7},
    {"type": "float64", "default": "1e3"},
    {"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAAAQ"},
    {"type": "string", "default": "null", "nullableVersions": "0+"},
    {"type": "string", "flexibleVersions": "none"},
    {"type": "[]string", "entityType": "topicName"},
    {"type": "[]int8", "default": "null", "nullableVersions": "0+"},
    {"type": "string", "default": 5},
    {"type": "float64", "default": "NaN"},
    {"type": "float64", "default": "-Infinity"},
    {"type": "float64", "default": " .5e-3 "},
    {"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAAAQ=="},
    {"type": "records", "default": "null"},
    {"type": "string", "default": "null", "nullableVersions": "0-3", "versions": "0-3"},
    {"type": "bytes", "default": "null", "nullableVersions": "0+"},
    {"type": "Part", "fields": INNER, "default": "null", "nullableVersions": "0+"},
    {"type": "[]Part", "fields": INNER, "default": "null", "nullableVersions": "0+"},
    {"type": "bytes", "default": ""},
    {"about": "prose"},
    {"ignorable": None},
    {"type": " [] int8 "},
    {"entityType": "unknown"},
    {"entityType": "brokerId"},
    {"type": "bytes", "zeroCopy": True},
    {"type": "bytes", "tag": 0, "taggedVersions": "3+", "versions": "1+", "nullableVersions": "0+"},
]
OURS_ALONE: list[tuple[Change, str]] = [
    # Fields of no version.
    ({"validVersions": "none"}, "validVersions is none, but there are fields"),
    # Jackson turns more text into numbers and flags than published schemas need.
    ({"apiKey": 5.5}, "apiKey is 5.5 instead of an integer"),
    ({"latestVersionUnstable": "True"}, "latestVersionUnstable is 'True'"),
    # A reversed range would mean "none".
    ({"validVersions": "4-1"}, "'4-1' is not a range"),
    # A struct without fields is far more likely a misspelt common struct.
    ({"fields": [field(type="Part")]}, "SampleRequest.First: struct Part is not specified"),
    ({"fields": [field(type="Part", fields=[])]}, "SampleRequest.First: struct Part is not specified"),
    # Java would decode version 3 like version 2.
    (
        {
            "commonStructs": [{"name": "Part", "versions": "0-2", "fields": INNER}],
            "fields": [field(type="Part")],
        },
        "SampleRequest.First: struct Part exists at versions 0-2, not at all of 0-3",
    ),
    # Names that clash in Python and not in Java.
    ({"fields": [field(name="AField"), field(name="aField")]}, "two fields would be called a_field"),
    ({"fields": [field(type="Message", fields=INNER)]}, "has a name that generated code needs"),
    ({"fields": [field(type="SampleRequest", fields=INNER)]}, "struct SampleRequest is specified twice"),
    ({"fields": [field(type="Field", fields=INNER)]}, "struct Field has a name that generated code needs"),
    ({"fields": [field(type="[]ClassVar", fields=INNER)]}, "struct ClassVar has a name that generated code"),
    ({"fields": [field(type="FIELDS", fields=INNER)]}, "struct FIELDS has a name that generated code needs"),
    # Python limits nested blocks.
    ({"fields": [nested(17)]}, "structs are nested more than 16 deep"),
    # The generated Java code does not compile or, with 010, means 8.
    ({"fields": [field(default="0x")]}, "default '0x' is not an integer"),
    ({"fields": [field(default="0x-1")]}, "default '0x-1' is not an integer"),
    ({"fields": [field(default="\N{ARABIC-INDIC DIGIT THREE}")]}, "is not an integer"),
    ({"fields": [field(default="010")]}, "default '010' is not an integer"),
]
"""Kafka's generator accepts these; ours rejects them for the reasons given."""
