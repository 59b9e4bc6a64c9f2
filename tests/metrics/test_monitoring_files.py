"""The dashboard and the alarms name metrics that exist, and each alarm has its section in the runbook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kraft_wire.metrics.definition import Definition, Kind
from kraft_wire.metrics.definitions import DEFINITIONS
from kraft_wire.metrics.process import QUANTILES
from kraft_wire.server.reports.step_times import BOUNDS_MS
from tests.support.dashboards import (
    OF_A_SCRAPE,
    OF_THE_PROCESS,
    RUNBOOK,
    THIRD_PARTY,
    alarms,
    dashboard,
    expressions,
    panels,
)
from tests.support.log_events import logged_events
from tests.support.promql import parse

BY_NAME = {each.name: each for each in DEFINITIONS.values()}
SINCE_THE_START = "KraftWireWrongNodes"
"""The alarm that reads a counter as it is."""
POSSIBLE = {
    "le": {str(each / 1000) for each in BOUNDS_MS},
    "quantile": {str(each) for each in QUANTILES},
    "event": logged_events(),
}
HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")
ALARMS = alarms()
EACH_EXPRESSION = pytest.mark.parametrize(
    ("owner", "text"), list(expressions()), ids=[f"{owner}-{text[:30]}" for owner, text in expressions()]
)
EACH_ALARM = pytest.mark.parametrize("alarm", ALARMS, ids=[each["alert"] for each in ALARMS])


def definition_of(name: str) -> Definition | None:
    """Return the definition that has a sample; None if no metric of ours has."""
    for part in HISTOGRAM_PARTS:
        histogram = BY_NAME.get(name.removesuffix(part))
        if name.endswith(part) and histogram is not None and histogram.kind is Kind.HISTOGRAM:
            return histogram
    found = BY_NAME.get(name)
    return None if found is not None and found.kind is Kind.HISTOGRAM else found


def labels_of(name: str) -> set[str]:
    """Return the labels of a sample, those of the scrape included. Raises LookupError for an unknown one."""
    if name in OF_THE_PROCESS:
        return set(OF_A_SCRAPE)
    definition = definition_of(name)
    if definition is None:
        raise LookupError(f"no metric has the sample {name}")
    return {*OF_A_SCRAPE, *definition.labels, *(["le"] if name.endswith("_bucket") else [])}


@EACH_EXPRESSION
def test_it_names_metrics_with_their_labels(owner: str, text: str) -> None:
    found = parse(text)
    if owner == "job":  # label_values(metric, label) has a label where others have a vector
        found = found._replace(selectors=found.selectors[:1])
    assert found.selectors
    known: set[str] = set()
    for selector in found.selectors:
        labels = labels_of(selector.name)
        assert selector.matchers.keys() <= labels
        known |= labels
    assert found.labels <= known


@EACH_EXPRESSION
def test_what_only_counts_has_a_rate_and_nothing_else_has(owner: str, text: str) -> None:
    with_rate = set(re.findall(r"\b(?:rate|increase)\((\w+)", text))
    for name in {each.name for each in parse(text).selectors} & BY_NAME.keys():
        is_counter = BY_NAME[name].kind is Kind.COUNTER
        assert (name in with_rate) is is_counter or owner == SINCE_THE_START


@EACH_EXPRESSION
def test_it_selects_values_that_labels_can_have(owner: str, text: str) -> None:
    for selector in parse(text).selectors:
        for label, (_, value) in selector.matchers.items():
            if label in POSSIBLE:
                assert set(value.split("|")) <= POSSIBLE[label]
            else:
                assert label == "job"


@pytest.mark.parametrize(
    "text", ["kraft_wire_nosuch", "kraft_wire_step_duration_seconds", "kraft_wire_epoch_total", "up"]
)
def test_an_unknown_metric_is_found_out(text: str) -> None:
    with pytest.raises(LookupError):
        labels_of(text)


@EACH_ALARM
def test_an_alarm_has_what_an_operator_needs(alarm: dict[str, object]) -> None:
    assert alarm["labels"] in ({"severity": "critical"}, {"severity": "warning"}, {"severity": "info"})
    annotations = alarm["annotations"]
    assert isinstance(annotations, dict)
    assert annotations.keys() == {"summary", "runbook"}
    assert annotations["runbook"] == f"docs/runbook.md#{str(alarm['alert']).lower()}"
    labels = {label for selector in parse(str(alarm["expr"])).selectors for label in labels_of(selector.name)}
    assert set(re.findall(r"\$labels\.(\w+)", annotations["summary"])) <= labels


def test_every_alarm_has_its_section_and_every_section_its_alarm() -> None:
    sections = re.findall(r"^## (KraftWire\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert sorted(sections) == sorted(each["alert"] for each in ALARMS)
    assert len(set(sections)) == len(sections)


def test_every_alarm_says_why_its_threshold_is_what_it_is() -> None:
    lines = (Path(RUNBOOK).parents[1] / "examples" / "monitoring" / "alarms.yml").read_text().splitlines()
    for number, line in enumerate(lines):
        if "- alert:" in line:
            assert re.fullmatch(r" *# .+\.", lines[number - 1])


def test_a_section_says_what_it_means_where_to_see_it_and_what_to_do() -> None:
    for section in RUNBOOK.read_text().split("\n## KraftWire")[1:]:
        assert re.findall(r"^\*\*(\w+)\*\*: ", section, re.MULTILINE) == ["Means", "See", "Do", "More"]


def test_the_runbook_names_what_there_is() -> None:
    text = RUNBOOK.read_text()
    quoted = {" ".join(each.split()) for each in re.findall(r'"([^"]+)"', text)}
    assert quoted - {panel["title"] for panel in panels()} == {"May fail"}, "a line of quorum status"
    for name in re.findall(r"`(kraft_wire_\w+)", text):
        assert name in BY_NAME
    anchors = {heading.lower() for heading in re.findall(r"^## (\w+)$", text, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(\w+)\)", text)) <= anchors


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    cells = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in cells, panel["title"]
                cells.add((x, y))
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(ids)) == len(ids)


def test_what_others_dashboards_read_is_defined() -> None:
    served = {
        name: set(each.names.labels or each.labels)
        for each in DEFINITIONS.values()
        for name in each.names.all
    }
    for metrics in THIRD_PARTY.values():
        for name, labels in metrics.items():
            if name not in OF_THE_PROCESS:
                assert set(labels) <= served[name]
