"""Archives of the classes that a JVM loads (JEP 350): with them Kafka and Spark start in about half the time.

`make test-compat` has them made. A JVM that finds none, or one made of other jars, does without."""

from __future__ import annotations

from pathlib import Path

from compat.harness.paths import ROOT

FOLDER = ROOT / "build" / "class-archives"
SPARK = "spark"


def archive(name: str) -> Path:
    """The file of Spark, or of a version of Kafka."""
    return FOLDER / f"{name}.jsa"


def using_archive(name: str) -> str:
    """The option of a JVM that uses it."""
    return f"-XX:SharedArchiveFile={archive(name)}"


def making_archive(name: str) -> list[str]:
    """The options of a JVM that writes it when it ends, without a word about classes that can't be in it."""
    return [f"-XX:ArchiveClassesAtExit={archive(name)}", "-Xlog:disable"]
