"""Judge cases that a failed test named: ``python -m compat.judges.codec [--kafka VERSION] CASE...``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from codegen.packages import NEWEST_KAFKA
from compat.harness.kafka.jars import find_jars
from compat.judges.codec.cases import Case, Judge
from compat.judges.codec.differences import stricter_than
from compat.judges.codec.java import JavaCodec
from compat.judges.codec.packages import package_of


def main() -> int:
    """Judge the cases; return exit code 1 if a case differs."""
    parser = argparse.ArgumentParser(prog="compat.judges.codec", description=__doc__)
    parser.add_argument(
        "--kafka",
        default=NEWEST_KAFKA,
        metavar="VERSION",
        help="the Kafka version to compare with (default: %(default)s)",
    )
    parser.add_argument(
        "cases", nargs="+", type=Case.parse, metavar="CASE", help="KIND/CLASS/VERSION/NUMBER/SEED"
    )
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
