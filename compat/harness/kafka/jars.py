"""Find the Kafka jars that ``make kafka`` fetched."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec

from compat.harness.paths import KAFKA_FOLDER, ROOT, MissingComponent

TOOLS_VERSION = "4.3.1"
"""The newest version whose command-line tools and message generator are published."""


class KafkaJars(msgspec.Struct, frozen=True):
    """The jars of one Kafka version that can be run."""

    version: str
    folder: Path

    @property
    def class_path(self) -> str:
        """Every jar by name, in a fixed order. A wildcard would follow the order of the file system."""
        return ":".join(str(jar) for jar in sorted(self.folder.glob("*.jar")))

    @property
    def release(self) -> str:
        """The release, which also names the metadata.version: "4.3" for 4.3.1."""
        return self.version.rpartition(".")[0]


def find_jars(version: str, kafka_folder: Path = KAFKA_FOLDER) -> KafkaJars:
    """Return the jars of a version; raises MissingComponent unless ``make kafka`` has fetched it."""
    folder = kafka_folder / version
    if not (folder / ".complete").exists():
        raise MissingComponent(f"Kafka {version} is not in {folder}: run `make kafka`")
    return KafkaJars(version, folder)


def tool_server_classes(kafka_folder: Path = KAFKA_FOLDER) -> Path:
    """Return the folder of the compiled tool server; raises MissingComponent without ``make kafka``."""
    folder = kafka_folder / "tool-server"
    if not (folder / ".complete").exists():
        raise MissingComponent(f"the tool server is not in {folder}: run `make kafka`")
    return folder / "classes"


def compiled(source_name: str, jars: KafkaJars, folder: Path) -> str:
    """Compile a class of compat/java into a folder. Returns the class path to run it with Kafka's jars.

    Raises MissingComponent without ``make kafka``, which brings the compiler.
    """
    (compiler,) = tool_server_classes().parent.glob("compiler/ecj-*.jar")
    source = ROOT / "compat" / "java" / source_name
    options = ["-nowarn", "--release", "17", "-classpath", jars.class_path, "-d", str(folder)]
    subprocess.run([java(), "-jar", str(compiler), *options, str(source)], check=True)
    return f"{folder}:{jars.class_path}"


def codec_judge_classes(kafka_folder: Path = KAFKA_FOLDER) -> Path:
    """Return the folder of the compiled codec judge; raises MissingComponent without ``make kafka``."""
    folder = kafka_folder / "codec-judge"
    if not (folder / ".complete").exists():
        raise MissingComponent(f"the codec judge is not in {folder}: run `make kafka`")
    return folder / "classes"


def config_judge_classes(kafka_folder: Path = KAFKA_FOLDER) -> Path:
    """Return the folder of the compiled config judge; raises MissingComponent without ``make kafka``."""
    folder = kafka_folder / "config-judge"
    if not (folder / ".complete").exists():
        raise MissingComponent(f"the config judge is not in {folder}: run `make kafka`")
    return folder / "classes"


def schema_judge_class_path(kafka_folder: Path = KAFKA_FOLDER) -> str:
    """Return the class path of the compiled schema judge and Kafka's message generator.

    Raises MissingComponent without ``make kafka``.
    """
    folder = kafka_folder / "schema-judge"
    if not (folder / ".complete").exists():
        raise MissingComponent(f"the schema judge is not in {folder}: run `make kafka`")
    return ":".join([str(folder / "classes"), *(str(jar) for jar in sorted(folder.glob("jars/*.jar")))])


def java() -> str:
    """Return the path of the ``java`` command; raises MissingComponent if there is none."""
    path = shutil.which("java")
    if path is None:
        raise MissingComponent("no `java` on the PATH: install a Java runtime, version 17 or newer")
    return path
