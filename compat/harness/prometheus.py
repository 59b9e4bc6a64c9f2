"""Run Prometheus over controllers, with our alarm rules made quick: what takes minutes takes seconds.

Each alarm keeps its expression, but waits for a second only, and looks back for ``WINDOW``. ``SCALED`` has
thresholds that no test can reach.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from urllib.request import urlopen

import msgspec
import yaml

from compat.harness.paths import ROOT, MissingComponent
from compat.harness.ports import HOST, free_port
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until

RULES: Final = ROOT / "examples" / "monitoring" / "alarms.yml"
WINDOW: Final = "20s"
SCRAPE_S: Final = 0.5
SCALED: Final[Mapping[str, tuple[str, str]]] = {
    "KraftWireLogGrows": ("500000000", "3000000"),
    "KraftWireSnapshotOld": ("7200", "5"),
    "KraftWireVoterLags": ("10000", "1000"),
    "KraftWireExporterLags": ("> 60", "> 3"),
}
"""By alarm, a threshold and the one in its place."""
_RANGE: Final = re.compile(r"\[\d+[smhd]\]")


class Alarm(NamedTuple):
    """An alarm of one job that is set off."""

    name: str
    job: str


def find_program(name: str) -> str:
    """Return the path of ``prometheus`` or ``promtool``. Raises MissingComponent."""
    own = ROOT / ".prometheus" / "usr" / "bin" / name
    found = str(own) if own.exists() else shutil.which(name)
    if found is None:
        raise MissingComponent(f"`{name}` is missing: run `make prometheus`")
    return found


def alarm_names() -> list[str]:
    """Return the names of all alarms."""
    return [rule["alert"] for rule in _rules()]


class Prometheus:
    """A running Prometheus. Its targets may change while it runs."""

    def __init__(self, workspace: Workspace) -> None:
        folder = workspace.folder / "prometheus"
        folder.mkdir(parents=True)
        self._targets = folder / "targets.json"
        self._targets.write_text("[]")
        rules, config = folder / "rules.yml", folder / "prometheus.yml"
        rules.write_text(yaml.safe_dump(_quick_rules()))
        config.write_text(yaml.safe_dump(_configuration(rules, self._targets)))
        self._address = f"{HOST}:{free_port()}"
        options = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
        command = [find_program("prometheus"), *options, f"--web.listen-address={self._address}"]
        workspace.start("prometheus", command)
        wait_until(self._is_ready, "Prometheus to be ready")

    def watch(self, jobs: Mapping[str, Sequence[str]]) -> None:
        """Scrape these addresses, by job, instead of those before."""
        groups = [{"targets": list(each), "labels": {"job": job}} for job, each in jobs.items()]
        new = self._targets.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(groups))
        new.replace(self._targets)

    def set_off(self) -> set[Alarm]:
        """Return the alarms that are set off now."""
        alerts = self._get("alerts")["alerts"]
        labels = [alert["labels"] for alert in alerts if alert["state"] == "firing"]
        return {Alarm(each["alertname"], each.get("job", "")) for each in labels}

    def value(self, expression: str) -> float | None:
        """Return the only value of an expression now; None if it has none."""
        results = self._get(f"query?query={quote(expression)}")["result"]
        return float(results[0]["value"][1]) if results else None

    def wait_for(self, job: str, *names: str) -> None:
        """Wait until all these alarms of a job were set off, not necessarily at once."""
        waiting = {Alarm(name, job) for name in names}

        def none_is_left() -> bool:
            waiting.difference_update(self.set_off())
            return not waiting

        wait_until(none_is_left, f"the alarms {', '.join(names)} of {job}")

    def wait_until_over(self, job: str, *names: str) -> None:
        """Wait until none of these alarms of a job is set off."""
        gone = {Alarm(name, job) for name in names}
        wait_until(lambda: not gone & self.set_off(), f"the end of {', '.join(names)} of {job}")

    def _is_ready(self) -> bool:
        with suppress(OSError), urlopen(f"http://{self._address}/-/ready") as answer:
            return bool(answer.status == 200)
        return False

    def _get(self, what: str) -> Any:
        with urlopen(f"http://{self._address}/api/v1/{what}") as answer:
            found = msgspec.json.decode(answer.read())
        assert found["status"] == "success", found
        return found["data"]


def _rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def _quick_rules() -> dict[str, Any]:
    return {
        "groups": [
            {"name": "quick", "interval": f"{int(SCRAPE_S * 1000)}ms", "rules": [*map(_quick, _rules())]}
        ]
    }


def _quick(rule: dict[str, Any]) -> dict[str, Any]:
    expression = _RANGE.sub(f"[{WINDOW}]", rule["expr"])
    if rule["alert"] in SCALED:
        threshold, scaled = SCALED[rule["alert"]]
        assert threshold in expression, f"{rule['alert']} has no threshold {threshold} any more"
        expression = expression.replace(threshold, scaled)
    return {"alert": rule["alert"], "expr": expression, "for": "1s"}


def _configuration(rules: Path, targets: Path) -> dict[str, Any]:
    often = f"{int(SCRAPE_S * 1000)}ms"
    return {
        "global": {"scrape_interval": often, "scrape_timeout": often, "evaluation_interval": often},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {
                "job_name": "controllers",
                "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}],
            }
        ],
    }


def pause_between_scrapes() -> None:
    """Let a value last until it was scraped."""
    time.sleep(3 * SCRAPE_S)
