"""docs/metrics.md has every metric, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from kraft_wire.metrics.definition import PREFIX
from kraft_wire.metrics.definitions import DEFINITIONS
from kraft_wire.metrics.health import readiness
from tests.metrics.counted import active

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()


def test_every_metric_is_documented_with_all_its_names() -> None:
    rows = {
        line.split("`")[1].partition("{")[0]: line
        for line in PAGE.splitlines()
        if line.startswith(f"| `{PREFIX}")
    }
    assert rows.keys() == {each.name for each in DEFINITIONS.values()}
    for definition in DEFINITIONS.values():
        row, names = rows[definition.name], definition.names
        assert f"| {definition.kind.value} | {definition.help}" in row
        documented = set(re.findall(r"`(kafka_\w+)", row))
        assert documented == set(names.all)


def test_every_check_is_documented() -> None:
    controller = active()
    for check in readiness(controller.node, controller.counted, controller.now_ms):
        assert f"\n| `{check.name}` |" in PAGE
