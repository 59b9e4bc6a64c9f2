"""The example of a declarative pipeline runs unchanged and makes the same tables as our own functions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml
from pyspark.sql import SparkSession

from compat.harness.paths import ROOT
from compat.harness.tables.lake_checks import DERIVED, compare
from compat.harness.tables.random_history import History, write_log
from compat.harness.tables.spark_session import FEW_ROWS
from kraft_wire.spark.tables.typed_records import RecordsTables

SPARK_SETTINGS = FEW_ROWS
COMPARED = ("broker_sessions", "churn", "configs", "failovers", "features", "leadership", "topics")
"""One table of each kind; every further table would take the same time to compute again."""
EXAMPLE = ROOT / "examples" / "declarative"


def run_example(project: Path, source: Path) -> None:
    settings = {**FEW_ROWS, "spark.kraft.path": str(source)}
    specification = yaml.safe_load((EXAMPLE / "spark-pipeline.yml").read_text())
    specification["storage"] = (project / "storage").as_uri()
    specification["configuration"] |= {
        name: value for name, value in FEW_ROWS.items() if name.startswith("spark.sql.")
    }
    project.joinpath("spark-pipeline.yml").write_text(yaml.safe_dump(specification))
    project.joinpath("transformations").symlink_to(EXAMPLE / "transformations")
    programs = Path(sys.executable).parent
    subprocess.run(
        [
            programs / "spark-pipelines",
            "run",
            *[word for name, value in settings.items() for word in ("--conf", f"{name}={value}")],
        ],
        cwd=project,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYSPARK_PYTHON": sys.executable},
        check=True,
    )


def test_the_example_makes_our_tables(spark: SparkSession, tmp_path: Path) -> None:
    source, project = tmp_path / "logs", tmp_path / "project"
    project.mkdir()
    for history in (History("one", 1, 80), History("two", 2, 60)):
        write_log(source / history.cluster, history)
    run_example(project, source)
    records = spark.read.format("kraft").load(str(source)).toArrow()
    tables = RecordsTables(spark.createDataFrame(records))
    made = project / "spark-warehouse"
    compare(spark, made / "records", records)
    for name in COMPARED:
        compare(spark, made / name, DERIVED[name](tables).toArrow())
    assert set(DERIVED) <= {folder.name for folder in made.iterdir()}
