"""``python -m codegen import | generate``: Kafka's message schemas, and the Python made of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from codegen.errors import ImportFailed, SchemaError, TargetRefused
from codegen.generate import differences, render, write
from codegen.importer import import_schemas
from codegen.packages import PACKAGES, SCHEMAS, Package

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 for what failed or differs, 2 for wrong usage."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "generate" and (options.source is None) != (options.into is None):
        parser.error("--from and --into belong together")
    try:
        return int(options.run(options))
    except (ImportFailed, SchemaError, TargetRefused) as error:
        print(f"codegen: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="codegen", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    importing = commands.add_parser("import", help="take the schemas out of Kafka's published jars")
    importing.add_argument("--kafka", required=True, metavar="VERSION")
    importing.add_argument(
        "--jars", type=Path, metavar="DIR", help="a folder of jars; else Maven resolves them"
    )
    importing.set_defaults(run=_import)
    generating = commands.add_parser("generate", help="write the committed packages, or one anywhere")
    generating.add_argument("--check", action="store_true", help="write nothing, fail where a file differs")
    generating.add_argument(
        "--from", dest="source", type=Path, metavar="SCHEMAS", help="a folder of schemas; needs --into"
    )
    generating.add_argument(
        "--into", type=Path, metavar="DIR", help="the package's folder: new, empty or generated before"
    )
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
    packages: Iterable[Package] = PACKAGES
    if options.source is not None:
        packages = [Package(options.source.resolve(), options.into.resolve())]
    failed = [_generate_package(each, options.root.resolve(), options.check) for each in packages]
    return int(any(failed))


def _generate_package(package: Package, root: Path, check: bool) -> bool:
    """Write one package, or compare it; returns whether it differs from its schemas afterwards."""
    schemas, target = root / package.schemas, root / package.target
    files = render(schemas, _name(schemas, root))
    if not check:
        changed = write(files, target)
        print(f"{len(files)} files in {package.target}, {len(changed)} changed")
        return False
    changed = differences(files, target)
    for name in changed:
        print(f"{package.target / name} differs from its schema; generate it again", file=sys.stderr)
    return bool(changed)


def _name(path: Path, root: Path) -> str:
    """The path from the project's root; elsewhere the folder's name, as headers tell no machine's paths."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


if __name__ == "__main__":
    raise SystemExit(main())
