"""The generated code of any Kafka: the committed package of the newest, else one made for the occasion."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codegen.generate import render, write
from codegen.importer import import_schemas
from codegen.packages import NEWEST_KAFKA
from compat.codec_judge.ours import OUR_PACKAGE
from compat.harness.jars import KafkaJars


@contextmanager
def package_of(jars: KafkaJars, folder: Path) -> Iterator[str]:
    """The name of the package of this Kafka's messages; what isn't there is made in ``folder``."""
    if jars.version == NEWEST_KAFKA:
        yield OUR_PACKAGE
        return
    schemas = folder / f"schemas-{jars.version}"
    import_schemas(jars.version, schemas, jars.folder)
    with package_from(schemas, folder, f"kafka_{jars.version.replace('.', '_')}") as package:
        yield package


@contextmanager
def package_from(schemas: Path, folder: Path, name: str) -> Iterator[str]:
    """The package ``name``, made in ``folder`` of the schemas; nothing can import it afterwards."""
    write(render(schemas, schemas.name), folder / name)
    sys.path.insert(0, str(folder))
    try:
        yield name
    finally:
        sys.path.remove(str(folder))
        for module in [each for each in sys.modules if each == name or each.startswith(name + ".")]:
            del sys.modules[module]
