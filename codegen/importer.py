"""Import the schemas from Kafka's published jars and keep their facts: no prose, no comments, no licence.

A fact is a name, type, version range, flag, tag, default or listener: the keys that kafka_json.py knows,
except "about". The result is one file per message and a MANIFEST (JSON) that says which jar holds which
schema.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codegen.schema.errors import ImportFailed
from codegen.schema.kafka_json import FIELD_KEYS, MESSAGE_KEYS, PROSE_KEYS, STRUCT_KEYS, load, many


@dataclass(frozen=True, slots=True)
class Jar:
    """A published jar that holds schemas: the folder inside it, and the first Kafka that has it."""

    artifact: str
    folder: str
    since: tuple[int, int] = (0, 0)


JARS = (
    Jar("kafka-clients", "common/message/"),
    Jar("kafka-metadata", "common/metadata/"),
    Jar("kafka-raft", "common/message/"),
    Jar("kafka-storage", "message/"),
    Jar("kafka-group-coordinator", "common/message/"),
    Jar("kafka-share-coordinator", "common/message/", since=(4, 0)),
    Jar("kafka-transaction-coordinator", "common/message/"),
)
"""All jars from OLDEST_KAFKA on."""
OLDEST_KAFKA = (3, 9)
MANIFEST = "MANIFEST"
_VERSION = re.compile(r"(?P<major>\d+)\.(?P<minor>\d+)(\.\d+)*(-[A-Za-z0-9.-]+)?")
_ERROR = "[ERROR]"
_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kraft-wire</groupId><artifactId>kafka-schemas</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = (
    "<dependency><groupId>org.apache.kafka</groupId>"
    "<artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
)


def is_version(text: str) -> bool:
    """Whether this is written like a version of Kafka ("4.4.0")."""
    return _VERSION.fullmatch(text) is not None


def jars_of(version: str) -> list[Jar]:
    """Return the jars that hold the schemas of a version of Kafka ("4.4.0"). Raises ImportFailed."""
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ImportFailed(f"{version!r} is not a version of Kafka; write 4.4.0")
    release = int(match["major"]), int(match["minor"])
    if release < OLDEST_KAFKA:
        oldest = ".".join(map(str, OLDEST_KAFKA))
        raise ImportFailed(f"Kafka {version} doesn't publish all of its schemas; take {oldest} or later")
    return [jar for jar in JARS if jar.since <= release]


def import_schemas(version: str, target: Path, jars: Path | None) -> int:
    """Write the facts of every schema of Kafka ``version`` into ``target``, and return the number of schemas.

    The jars come from the folder ``jars``, or from Maven if that is None. The files of an earlier import in
    ``target`` are deleted; a folder with other files is refused. Raises ImportFailed or SchemaError.
    """
    if target.exists() and not (target / MANIFEST).is_file() and any(target.iterdir()):
        raise ImportFailed(f"{target} holds something that was not imported; nothing is written there")
    if jars is not None:
        return _import_from(jars, version, target)
    with tempfile.TemporaryDirectory() as folder:
        _resolve(version, Path(folder))
        return _import_from(Path(folder), version, target)


def _import_from(jars: Path, version: str, target: Path) -> int:
    facts: dict[str, Any] = {}
    origins = []
    for published in jars_of(version):
        artifact = published.artifact
        jar = jars / f"{artifact}-{version}.jar"
        if not jar.is_file():
            raise ImportFailed(f"{jar.name} is not in {jars}")
        schemas = dict(_schemas_of(jar, published.folder))
        if not schemas:
            raise ImportFailed(f"{jar.name} has no schema in {published.folder}")
        twice = sorted(facts.keys() & schemas.keys())
        if twice:
            raise ImportFailed(f"{', '.join(twice)}: in {jar.name} and in another jar")
        facts |= schemas
        digest = hashlib.sha256(jar.read_bytes()).hexdigest()
        origins.append({"jar": jar.name, "artifact": artifact, "sha256": digest, "schemas": sorted(schemas)})
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    for name, node in facts.items():
        (target / f"{name}.json").write_text(format_schema(node), encoding="utf-8")
    manifest = json.dumps({"kafka": version, "jars": origins}, indent=1)
    (target / MANIFEST).write_text(manifest + "\n", encoding="utf-8")
    return len(facts)


def _schemas_of(jar: Path, folder: str) -> Iterator[tuple[str, Any]]:
    try:
        with zipfile.ZipFile(jar) as archive:
            entries = sorted(archive.namelist())
            texts = {
                entry: archive.read(entry).decode("utf-8")
                for entry in entries
                if entry.startswith(folder) and entry.endswith(".json")
            }
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ImportFailed(f"{jar.name} can't be read: {error}") from error
    for entry, text in texts.items():
        where = f"{jar.name}:{entry}"
        node = load(text, where)
        yield str(node.get("name")), only_facts(node, entry)


def _resolve(version: str, folder: Path) -> None:
    """Let Maven copy the jars into ``folder``."""
    maven = shutil.which("mvn")
    if maven is None:
        raise ImportFailed("Maven (mvn) is not installed; install it, or give a folder of jars with --jars")
    pom = folder / "pom.xml"
    dependencies = "".join(
        _DEPENDENCY.format(artifact=each.artifact, version=version) for each in jars_of(version)
    )
    pom.write_text(_POM.format(dependencies=dependencies), encoding="utf-8")
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    options = ["-DexcludeTransitive=true", f"-DoutputDirectory={folder}"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ImportFailed(
            f"Maven could not resolve Kafka {version}: {_complaint(done.stdout + done.stderr)}"
        )


def _complaint(said: str) -> str:
    """Return the first of Maven's errors, in plain text."""
    lines = [line.strip() for line in _TERMINAL_CODE.sub("", said).splitlines() if line.strip()]
    errors = [line.removeprefix(_ERROR).strip() for line in lines if line.startswith(_ERROR)]
    return (errors or lines or ["it doesn't say why"])[0].removesuffix("-> [Help 1]").rstrip()


def only_facts(node: Any, where: str) -> Any:
    """Return the same schema without prose, with keys in a fixed order, and without booleans that are
    false."""
    return _facts(node, MESSAGE_KEYS, where)


def _facts(node: dict[str, Any], known: tuple[str, ...], where: str) -> dict[str, Any]:
    unknown = sorted(set(node) - set(known) - set(PROSE_KEYS))
    if unknown:
        raise ImportFailed(f"{where}: {node.get('name')} has the unknown key {', '.join(unknown)}")
    facts: dict[str, Any] = {}
    for key in known:
        value = node.get(key)
        if value is None or (value is False and key != "default"):
            continue
        if key == "fields":
            value = [_facts(each, FIELD_KEYS, where) for each in many(node, key)]
        elif key == "commonStructs":
            value = [_facts(each, STRUCT_KEYS, where) for each in many(node, key)]
        facts[key] = value
    return facts


def format_schema(node: dict[str, Any]) -> str:
    """Return JSON text with one line per field, so that a change of a field is a change of a line."""
    return _format(node, 0) + "\n"


def _format(node: dict[str, Any], indent: int) -> str:
    nested = [key for key in ("commonStructs", "fields") if node.get(key)]
    if not nested:
        return json.dumps(node, ensure_ascii=False)
    pad = " " * indent
    plain = {key: value for key, value in node.items() if key not in ("commonStructs", "fields")}
    parts = [json.dumps(plain, ensure_ascii=False)[:-1]]
    for key in nested:
        children = ",\n".join(f"{pad}  {_format(child, indent + 2)}" for child in node[key])
        parts.append(f'"{key}": [\n{children}\n{pad}]')
    return ", ".join(parts) + "}"
