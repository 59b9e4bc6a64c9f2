"""A quorum of three Java controllers with which nothing is wrong, for tests to change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kraft_wire.cli.quorum.migrate.facts import Broker, Controller, File, Folder, Kind, Quorum, Verdict
from kraft_wire.metadata.features.supported import supported_ranges

CLUSTER_ID = "q3YRw3NrQz6yVPNUPcbbDA"
VOTERS = "1@c1:9093,2@c2:9093,3@c3:9093"
BOOTSTRAP = "c1:9093,c2:9093,c3:9093"
JAVA_APIS = frozenset({1, 18, 52, 55, 57, 60})
OUR_APIS = frozenset({0, 1, 18, 52, 55, 57, 60})
LEVELS = {"metadata.version": 33, "transaction.version": 2}


def features(metadata_version: int, kraft_version: int | None = 1) -> dict[str, tuple[int, int]]:
    """The ranges of a node that supports at most these levels."""
    found = {"metadata.version": (7, metadata_version)}
    return found if kraft_version is None else {**found, "kraft.version": (0, kraft_version)}


def properties(id: int, **changes: str) -> dict[str, str]:
    """A controller's properties with static voters; in ``changes`` underscores stand for dots."""
    return {
        "process.roles": "controller",
        "node.id": str(id),
        "listeners": f"CONTROLLER://c{id}:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": VOTERS,
        "log.dirs": f"/data/{id}",
        **{key.replace("_", "."): value for key, value in changes.items()},
    }


def dynamic(id: int, **changes: str) -> dict[str, str]:
    """A controller's properties without static voters."""
    found = properties(id, **{"controller_quorum_bootstrap_servers": BOOTSTRAP, **changes})
    del found["controller.quorum.voters"]
    return found


def folder(id: int, **changes: Any) -> Folder:
    values = {
        "path": f"/data/{id}",
        "cluster_id": CLUSTER_ID,
        "node_id": id,
        "directory_id": f"directory-{id}",
        "pid": 1000 + id,
        **changes,
    }
    return Folder(**values)


def file(id: int, said: Mapping[str, str] | None = None, **of_folder: Any) -> File:
    return File(
        path=f"/etc/kafka/c{id}.properties",
        properties=properties(id) if said is None else said,
        folder=folder(id, **of_folder),
    )


def controller(id: int, **changes: Any) -> Controller:
    """A Java controller that runs, 3 leads."""
    values = {
        "id": id,
        "address": f"c{id}:9093",
        "is_leader": id == 3,
        "software": "Java",
        "apis": JAVA_APIS,
        "features": supported_ranges(),
        "registered_features": supported_ranges(),
        "protocols": ("PLAINTEXT",),
        "settings": properties(id),
        "file": file(id),
        **changes,
    }
    return Controller(**values)


def ours(id: int, **changes: Any) -> Controller:
    return controller(id, **{"software": "kraft-wire", "apis": OUR_APIS, **changes})


def broker(id: int, **changes: Any) -> Broker:
    said = {"process.roles": "broker", "node.id": str(id), "controller.quorum.voters": VOTERS}
    values = {"id": id, "features": supported_ranges(), "settings": said, **changes}
    return Broker(**values)


def quorum(*controllers: Controller, **changes: Any) -> Quorum:
    """A quorum of these controllers, by default 1, 2 and 3 of ``controller``."""
    values = {
        "cluster_id": CLUSTER_ID,
        "leader_id": 3,
        "bootstrap": BOOTSTRAP,
        "levels": LEVELS,
        "refusal": "",
        "controllers": controllers or tuple(map(controller, (1, 2, 3))),
        **changes,
    }
    return Quorum(**values)


def with_one(changed: Controller) -> tuple[Controller, ...]:
    """The controllers 1, 2 and 3, one of which is this one."""
    return tuple(changed if id == changed.id else controller(id) for id in (1, 2, 3))


def changed(node: Controller, **changes: Any) -> Controller:
    return msgspec.structs.replace(node, **changes)


def texts(verdict: Verdict, kind: Kind = "in the way") -> list[tuple[str, str]]:
    """The nodes and texts of the findings of a kind."""
    return [(finding.node, finding.what) for finding in verdict.findings if finding.kind == kind]


def commands(verdict: Verdict, kind: Kind = "in the way") -> list[str]:
    return [finding.command for finding in verdict.findings if finding.kind == kind and finding.command]
