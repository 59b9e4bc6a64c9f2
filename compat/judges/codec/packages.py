"""Provide the generated code for any Kafka version: the committed package, or one that is generated now."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codegen.generate import render, write
from codegen.importer import import_schemas
from codegen.packages import NEWEST_KAFKA
from compat.harness.kafka.jars import KafkaJars
from compat.judges.codec.ours import OUR_PACKAGE


@contextmanager
def package_of(jars: KafkaJars, folder: Path) -> Iterator[str]:
    """Yield the name of the package of this Kafka's messages; generate it in ``folder`` if it isn't
    committed."""
    if jars.version == NEWEST_KAFKA:
        yield OUR_PACKAGE
        return
    schemas = folder / f"schemas-{jars.version}"
    import_schemas(jars.version, schemas, jars.folder)
    with package_from(schemas, folder, f"kafka_{jars.version.replace('.', '_')}") as package:
        yield package


@contextmanager
def package_from(schemas: Path, folder: Path, name: str) -> Iterator[str]:
    """Generate the package ``name`` from the schemas in ``folder``; it can be imported only in the block."""
    write(render(schemas, schemas.name), folder / name)
    sys.path.insert(0, str(folder))
    try:
        yield name
    finally:
        sys.path.remove(str(folder))
        for module in [each for each in sys.modules if each == name or each.startswith(name + ".")]:
            del sys.modules[module]
