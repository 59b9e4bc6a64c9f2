"""``python -m compat.codec_judge [--kafka VERSION] CASE...``: judge cases that a test has named."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from codegen.packages import NEWEST_KAFKA
from compat.codec_judge.cases import Case, Judge
from compat.codec_judge.differences import stricter_than
from compat.codec_judge.java import JavaCodec
from compat.codec_judge.packages import package_of
from compat.harness.jars import find_jars


def main() -> int:
    """The exit code: 1 where a case differs."""
    parser = argparse.ArgumentParser(prog="compat.codec_judge", description=__doc__)
    parser.add_argument("--kafka", default=NEWEST_KAFKA, metavar="VERSION", help="default: %(default)s")
    parser.add_argument("cases", nargs="+", type=Case.parse, metavar="CASE")
    options = parser.parse_args()
    jars = find_jars(options.kafka)
    with (
        tempfile.TemporaryDirectory() as folder,
        package_of(jars, Path(folder)) as package,
        JavaCodec(jars, Path(folder) / "java.log") as java,
    ):
        verdicts = Judge(java, package, stricter_than(jars.version)).judge(options.cases)
    for outcome, count in verdicts.outcomes.items():
        print(f"{count} agreed: {outcome}")
    if verdicts.differences:
        print(verdicts.report())
    return 1 if verdicts.differences else 0


if __name__ == "__main__":
    sys.exit(main())
