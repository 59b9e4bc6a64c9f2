"""``python -m codegen.config_facts extract --jars FOLDER | generate [--check]``.

``extract`` runs ConfigFacts.java on a Kafka distribution's jars (a JDK is needed) and writes
schemas/kafka/VERSION-configs.json. ``generate`` turns that file into kraft_wire/configs/tables.py;
with ``--check`` it writes nothing and fails where the committed module differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FACTS = ROOT / "schemas" / "kafka" / "4.4.0-configs.json"
MODULE = ROOT / "kraft_wire" / "configs" / "tables.py"
LINE_LENGTH = 110

HEADER = '''"""Define Kafka {version}'s configuration keys: types, defaults, bounds and synonyms.

Generated from schemas/kafka/{file} by ``python -m codegen.config_facts generate``: do not edit.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.configs.types import ConfigKey, Synonym

'''

TABLES = {
    "topic": "TOPIC",
    "broker": "BROKER",
    "brokerDynamicOnly": "BROKER_DYNAMIC_ONLY",
    "group": "GROUP",
    "clientMetrics": "CLIENT_METRICS",
}
SETS = {
    "brokerDynamic": "BROKER_DYNAMIC",
    "brokerDynamicPerBroker": "BROKER_DYNAMIC_PER_BROKER",
    "brokerDynamicPerListener": "BROKER_DYNAMIC_PER_LISTENER",
}
ARGUMENTS = {
    "min": "minimum",
    "max": "maximum",
    "in": "allowed",
    "inIgnoringCase": "allowed_in_any_case",
    "distinct": "distinct",
    "notNull": "not_null",
    "notEmpty": "not_empty",
    "required": "required",
    "internal": "internal",
    "rule": "rule",
}


def extract(jars: Path) -> None:
    """Compile and run ConfigFacts.java against the jars, and write its output."""
    source = Path(__file__).with_name("ConfigFacts.java")
    class_path = f"{jars}/*"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["javac", "-cp", class_path, "-d", folder, str(source)], check=True)
        command = ["java", "-cp", f"{folder}:{class_path}", "ConfigFacts"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    facts = json.loads(printed)
    path = FACTS.with_name(f"{facts['kafka']}-configs.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")


def generate(facts: dict[str, Any], file: str) -> str:
    """Return the text of the Python module, formatted as ruff does."""
    parts = [HEADER.format(version=facts["kafka"], file=file)]
    for table, name in TABLES.items():
        parts.append(f"{name}: Final = (\n")
        parts += (_key(key, fact) for key, fact in facts[table].items())
        parts.append(")\n\n")
    parts.append(_mapping("TOPIC_SYNONYMS", {k: _synonyms(v) for k, v in facts["topicSynonyms"].items()}))
    parts.append(_mapping("GROUP_SYNONYMS", {k: _text(v) for k, v in facts["groupSynonyms"].items()}))
    parts.append("\n".join(_set(name, facts[names]) for names, name in SETS.items()))
    return "".join(parts)


def _set(name: str, members: list[str]) -> str:
    lines = "".join(f"        {_text(member)},\n" for member in members)
    return f"{name}: Final = frozenset(\n    {{\n{lines}    }}\n)\n"


def _key(name: str, fact: dict[str, Any]) -> str:
    arguments = [_text(name), _text(fact["type"]), _value(fact.get("default"))]
    arguments += [f"{ARGUMENTS[k]}={_value(v)}" for k, v in fact.items() if k in ARGUMENTS]
    return _call("ConfigKey", arguments, indent=4)


def _synonyms(synonyms: list[dict[str, Any]]) -> str:
    calls = [
        f"Synonym({_text(s['name'])}" + (f", {s['factor']}" if "factor" in s else "") + ")" for s in synonyms
    ]
    return f"({', '.join(calls)}{',' if len(calls) == 1 else ''})"


def _call(function: str, arguments: list[str], indent: int) -> str:
    """Return a call on one line if it fits, else with one argument per line."""
    pad = " " * indent
    line = f"{pad}{function}({', '.join(arguments)}),\n"
    if len(line) <= LINE_LENGTH + 1:
        return line
    body = "".join(f"{pad}    {argument},\n" for argument in arguments)
    return f"{pad}{function}(\n{body}{pad}),\n"


def _mapping(name: str, entries: dict[str, str]) -> str:
    lines = [f"{name}: Final = {{\n"]
    for key, value in entries.items():
        line = f"    {_text(key)}: {value},\n"
        if len(line) > LINE_LENGTH + 1:
            items = value[1:-1].rstrip(",").replace("), Synonym", "),\n        Synonym")
            line = f"    {_text(key)}: (\n        {items},\n    ),\n"
        lines.append(line)
    return "".join([*lines, "}\n\n"])


def _text(value: str) -> str:
    return json.dumps(value)


def _value(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        items = ", ".join(_text(item) for item in value)
        return f"({items}{',' if len(value) == 1 else ''})"
    return repr(value)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen.config_facts")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("extract").add_argument("--jars", type=Path, required=True)
    commands.add_parser("generate").add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    if options.command == "extract":
        extract(options.jars)
        return 0
    text = generate(json.loads(FACTS.read_text(encoding="utf-8")), FACTS.name)
    if not options.check:
        MODULE.write_text(text, encoding="utf-8")
        return 0
    if not MODULE.exists() or MODULE.read_text(encoding="utf-8") != text:
        print(f"{MODULE.relative_to(ROOT)} is not what {FACTS.relative_to(ROOT)} gives: run generate")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
