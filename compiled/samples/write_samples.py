"""Write the Cython of the tests' sample schemas instead of Kafka's; see `make test-compiled`.

PYTHONPATH=.:tests KRAFT_WIRE_SAMPLES=FOLDER python compiled/samples/write_samples.py TARGET

FOLDER holds the messages that tests have written there. The samples with all features and with odd ones are
added.
"""

from __future__ import annotations

import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path

from codegen.cython.package import render_plans
from codegen.emit.plan import MessagePlan, plan
from codegen.generate import load_schemas
from codegen.packages import PACKAGES
from tests.support.schema_samples import SAMPLES, everything, generated, oddities

ROOT = Path(__file__).parents[2]


def main(recorded: Path, target: Path) -> None:
    for node in (everything(), *oddities()):
        generated(node)
    packages = {".".join(each.target.parts): load_schemas(ROOT / each.schemas) for each in PACKAGES[1:]}
    packages[SAMPLES] = [_plan(path) for path in sorted(recorded.glob("*.pickle"))]
    for name, text in render_plans(packages).items():
        (target / name).write_text(text, encoding="utf-8")
    print(sum(map(len, packages.values())), "messages")


def _plan(path: Path) -> MessagePlan:
    return replace(plan(pickle.loads(path.read_bytes())), own_module=path.stem)


if __name__ == "__main__":
    main(Path(os.environ["KRAFT_WIRE_SAMPLES"]), Path(sys.argv[1]))
