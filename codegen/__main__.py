"""``python -m codegen import --kafka VERSION [--jars DIR] | generate [--check]``, from the project's root."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from codegen.errors import ImportFailed, SchemaError
from codegen.generate import differences, render, write
from codegen.importer import import_schemas

ROOT = Path(__file__).resolve().parent.parent
NEWEST_KAFKA = "4.4.0"
SCHEMAS = Path("schemas/kafka")
MESSAGES = Path("kraft_wire/protocol/messages")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ImportFailed, SchemaError) as error:
        print(f"codegen: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="codegen", description=__doc__)
    commands = parser.add_subparsers(required=True)
    importing = commands.add_parser("import", help="take the schemas out of Kafka's published jars")
    importing.add_argument("--kafka", required=True, metavar="VERSION")
    importing.add_argument(
        "--jars", type=Path, metavar="DIR", help="a folder of jars; else Maven resolves them"
    )
    importing.set_defaults(run=_import)
    generating = commands.add_parser("generate", help="write the Python of every schema")
    generating.add_argument("--check", action="store_true", help="write nothing, fail where a file differs")
    generating.set_defaults(run=_generate)
    for command in (importing, generating):
        command.add_argument("--root", type=Path, default=ROOT, help="the project's root")
    return parser


def _import(options: argparse.Namespace) -> int:
    target = SCHEMAS / options.kafka
    count = import_schemas(options.kafka, options.root / target, options.jars)
    print(f"{count} schemas of Kafka {options.kafka} in {target}")
    return 0


def _generate(options: argparse.Namespace) -> int:
    source = SCHEMAS / NEWEST_KAFKA
    files = render(options.root / source, source.as_posix())
    target = options.root / MESSAGES
    if not options.check:
        changed = write(files, target)
        print(f"{len(files)} files in {MESSAGES}, {len(changed)} changed")
        return 0
    changed = differences(files, target)
    for name in changed:
        print(f"{MESSAGES / name} differs from its schema; run `python -m codegen generate`", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    raise SystemExit(main())
