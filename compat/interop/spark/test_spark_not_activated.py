"""In an environment that isn't activated, Spark's workers run the environment's Python too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.spark_readers import batch

JAVA_LOG = Path(__file__).parents[3] / "tests/log/data/java-4.4.0"
SCRIPT = """
import sys
from kraft_wire.spark import session

spark = session("local[1]", {"spark.ui.enabled": "false"})
print("records:", spark.read.format("kraft").load(sys.argv[1]).count())
spark.stop()
"""


def test_workers_run_the_python_that_has_the_package(tmp_path: Path) -> None:
    java = shutil.which("java")
    assert java is not None, "Spark needs one"
    (tmp_path / "java").symlink_to(java)
    path = f"{tmp_path}:/usr/bin:/bin"
    found = shutil.which("python3", path=path)
    assert found is None or Path(found).parent != Path(sys.executable).parent, (
        "the environment is on the PATH"
    )
    left_out = {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "VIRTUAL_ENV"}
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(JAVA_LOG)],
        env={**env, "PATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert f"records: {len(batch(JAVA_LOG))}" in ended.stdout, ended.stdout + ended.stderr
    assert ended.returncode == 0
