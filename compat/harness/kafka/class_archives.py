"""Name the archives of loaded classes (JEP 350), with which Kafka and Spark start in half the time.

`make test-compat` creates them. A JVM that finds no archive, or one of other jars, starts without it."""

from __future__ import annotations

from pathlib import Path

from compat.harness.paths import ROOT

FOLDER = ROOT / "build" / "class-archives"
SPARK = "spark"


def archive(name: str) -> Path:
    """Return the archive's file; ``name`` is SPARK or a version of Kafka."""
    return FOLDER / f"{name}.jsa"


def using_archive(name: str) -> str:
    """Return the JVM option that uses an archive."""
    return f"-XX:SharedArchiveFile={archive(name)}"


def making_archive(name: str) -> list[str]:
    """Return the JVM options that write an archive at exit, without warnings about classes that don't fit."""
    return [f"-XX:ArchiveClassesAtExit={archive(name)}", "-Xlog:disable"]
