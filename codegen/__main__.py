"""``python -m codegen import | diff | generate | cython``: import Kafka's message schemas and generate code
from them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from codegen.cython.package import write_cython
from codegen.diff import compare
from codegen.diff.report import as_json, as_text
from codegen.generate import differences, render, write
from codegen.importer import import_schemas, is_version
from codegen.packages import PACKAGES, SCHEMAS, Package
from codegen.schema.errors import ImportFailed, SchemaError, TargetFailed, TargetRefused
from codegen.schema.sources import read_schemas

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code.

    0 is success, 1 a failure, a difference or an incompatible change, 2 wrong usage, or for diff an
    unreadable schema.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "generate" and (options.source is None) != (options.into is None):
        parser.error("--from and --into belong together")
    try:
        return int(options.run(options))
    except (ImportFailed, SchemaError, TargetFailed, TargetRefused) as error:
        print(f"codegen: {error}", file=sys.stderr)
        return 2 if options.command == "diff" else 1


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
    comparing = commands.add_parser("diff", help="say what changed, and whether Kafka's rules allow it")
    for name in ("old", "new"):
        comparing.add_argument(name, metavar=name.upper(), help="a folder of schemas, or an imported version")
    comparing.add_argument("--json", action="store_true", help="one JSON object instead of text")
    comparing.add_argument(
        "--wire", action="store_true", help="judge bytes alone: are they the same at every common version?"
    )
    comparing.set_defaults(run=_diff)
    compiling = commands.add_parser("cython", help="write what the compiled wheel is built from")
    compiling.add_argument("--into", required=True, type=Path, metavar="DIR", help="a folder that exists")
    compiling.set_defaults(run=_cython)
    for command in (importing, generating, comparing, compiling):
        command.add_argument("--root", type=Path, default=ROOT, help="the project's root")
    return parser


def _import(options: argparse.Namespace) -> int:
    target = SCHEMAS / options.kafka
    count = import_schemas(options.kafka, options.root / target, options.jars)
    print(f"{count} schemas of Kafka {options.kafka} in {target}")
    return 0


def _cython(options: argparse.Namespace) -> int:
    count = write_cython(options.root.resolve(), options.into)
    print(f"{count} files in {options.into}")
    return 0


def _generate(options: argparse.Namespace) -> int:
    packages: Iterable[Package] = PACKAGES
    root = options.root.resolve()
    if options.source is not None:
        packages = [Package(options.source.resolve(), options.into.resolve())]
        if options.into.resolve() in [root / each.target for each in PACKAGES]:
            raise TargetRefused(options.into, "it is the project's own; see codegen/packages.py")
    failed = [_generate_package(each, root, options.check) for each in packages]
    return int(any(failed))


def _diff(options: argparse.Namespace) -> int:
    sides = [_schemas_called(name, options.root) for name in (options.old, options.new)]
    old, new = ([each.message for each in read_schemas(folder)] for folder in sides)
    diff = compare(old, new)
    write_report = as_json if options.json else as_text
    print(write_report(diff, options.old, options.new, wire_only=options.wire))
    return int(not (diff.same_bytes if options.wire else diff.compatible))


def _schemas_called(name: str, root: Path) -> Path:
    """Return a folder by its path, or the imported schemas of a version of Kafka."""
    for folder in (Path(name), root / SCHEMAS / name):
        if folder.exists():
            return folder
    hint = f"; `python -m codegen import --kafka {name}` fetches it" if is_version(name) else ""
    raise SchemaError(name, f"neither a folder nor in {SCHEMAS}{hint}")


def _generate_package(package: Package, root: Path, check: bool) -> bool:
    """Write one package, or compare it. Returns whether it still differs from its schemas."""
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
    """Return the path from the project's root. Outside of it return the folder's name, so that headers
    contain no local paths."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


if __name__ == "__main__":
    raise SystemExit(main())
