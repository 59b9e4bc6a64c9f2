"""Measure the processor time and the memory of imports, in new processes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Mapping

import msgspec

from compat.benches import tiers
from compat.benches.codec.codecs import WITHOUT_TEST_SUPPORT
from compat.harness.paths import ROOT

MIB = 2**20

# The process measures itself, so that Python's own start isn't included.
_MEASURE = """
import os, sys, time
def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
before, began = resident(), time.process_time()
exec(sys.argv[1])
print(time.process_time() - began, resident() - before)
"""

_LAZILY = "import kraft_wire.protocol, kraft_wire.protocol.registry"
_ALL_OF_OURS = """
from kraft_wire.protocol.messages import MODULES
from kraft_wire.protocol.registry import message_class
for name in MODULES: message_class(name)
"""
_ALL_OF_KIO = f"""
{WITHOUT_TEST_SUPPORT}
import kio.serial
from kio.index import load_entity_module
from kio.schema.index import schema_name_map
for name, versions in schema_name_map.items():
    for version, kinds in versions.items():
        for kind in kinds: load_entity_module(name, version, kind)
"""
_ALL_OF_KAFKA_PYTHON = """
import kafka.protocol.admin, kafka.protocol.consumer, kafka.protocol.metadata, kafka.protocol.producer
import kafka.protocol.sasl
"""


class Import(msgspec.Struct, frozen=True):
    """One way to import a package; the goals are upper bounds."""

    title: str
    code: str
    goal_s: float | None = None
    goal_bytes: int | None = None
    environment: Mapping[str, str] = tiers.PURE


LAZILY = Import("kraft_wire.protocol and its registry, messages loaded lazily", _LAZILY, 0.1, 10 * MIB)
IMPORTS = (
    LAZILY,
    Import("kraft_wire.protocol, all messages", _ALL_OF_OURS),
    Import("kio, its whole schema", _ALL_OF_KIO),
    Import("kafka-python, its whole protocol", _ALL_OF_KAFKA_PYTHON),
)


class ImportCost(msgspec.Struct, frozen=True):
    """The best and median time of several processes, and the median growth of their memory."""

    imported: Import
    best_s: float
    median_s: float
    resident_bytes: int


def measure_imports(rounds: int, compiled: Mapping[str, str] | None) -> list[ImportCost]:
    """Measure each import in ``rounds`` processes, in turn; a first run writes the bytecode caches.

    ``compiled`` is the environment with our compiled messages, or None.
    """
    imports = list(IMPORTS)
    if compiled is not None:
        imports.append(
            Import("kraft_wire.protocol, all messages, compiled", _ALL_OF_OURS, environment=compiled)
        )
    for imported in imports:
        _import_once(imported)
    measured = [[_import_once(imported) for imported in imports] for _ in range(rounds)]
    return [
        ImportCost(
            imported,
            min(seconds for seconds, _ in runs),
            statistics.median(seconds for seconds, _ in runs),
            round(statistics.median(resident for _, resident in runs)),
        )
        for imported, runs in zip(imports, zip(*measured, strict=True), strict=True)
    ]


def _import_once(imported: Import) -> tuple[float, int]:
    environment = {**os.environ, **imported.environment}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", _MEASURE, imported.code]
    answer = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    seconds, resident_bytes = answer.split()
    return float(seconds), int(resident_bytes)
