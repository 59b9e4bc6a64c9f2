"""Read a cluster's state from Kafka's metadata shell, as ``visible_in_shell`` derives it from
``state_tables``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from compat.harness.kafka.tools import SHELL_TRIES, KafkaTools
from compat.harness.tables.state_tables import StateTables
from kraft_wire.metadata.configs import ResourceType

INDENT: Final = 2
FIELD: Final = re.compile(r"(\w+)=(\[[^]]*]|{[^}]*}|'[^']*'|[^,)]*)")
"""A field in Java's text form of a registration; everything inside brackets is its value."""
METADATA_VERSIONS: Final = {"Optional[4.3-IV0]": 30}
RECOVERY_STATES: Final = {"RECOVERED": 0, "RECOVERING": 1}


def wait_for_image(tools: KafkaTools, file: Path, expected: StateTables) -> StateTables:
    """Read the image of a segment or snapshot until it is as expected, and return the last one read.

    The shell may answer before it has read all of the file.
    """
    for _ in range(SHELL_TRIES):
        image = shown_image(tools, file)
        if image == expected:
            break
    return image


def shown_image(tools: KafkaTools, file: Path) -> StateTables:
    """Read the image of a segment or snapshot once."""
    return _image_of(tools.metadata_shell(file, "tree", "/image").stdout)


def _image_of(printed: str) -> StateTables:
    tree = _tree(printed)
    topics = tree["topics"]["byName"]
    return {
        "partitions": dict(_partitions(topics)),
        "topics": {(_leaf(topic["id"]),): (name, len(topic) - 2) for name, topic in topics.items()},
        "brokers": {(int(id),): _broker(_leaf(text)) for id, text in tree["cluster"]["brokers"].items()},
        "configs": dict(_configs(tree["configs"])),
        "features": dict(_features(tree["features"])),
    }


def visible_in_shell(state: StateTables) -> StateTables:
    """Remove from a state what the shell can't show: a broker's registration offset, the order of its end
    points, and the difference between no cordoned log dirs and none reported."""
    return {**state, "brokers": {id: _shown_of(broker) for id, broker in state["brokers"].items()}}


def _shown_of(broker: Any) -> Any:
    epoch, incarnation, end_points, *middle, cordoned, _, migrating = broker
    return epoch, incarnation, tuple(sorted(end_points)), *middle, cordoned or (), migrating


def _tree(printed: str) -> Any:
    """Parse the printed tree into nested dicts; a value is the only key below its name."""
    root: dict[str, Any] = {}
    above = [root]
    for line in printed.splitlines():
        name = line.lstrip(" ")
        if not name:
            continue
        depth = (len(line) - len(name)) // INDENT
        del above[depth + 1 :]
        above.append(above[depth].setdefault(name.removesuffix(":"), {}))
    return root


def _leaf(tree: Any) -> str:
    (text,) = tree
    return str(text)


def _partitions(topics: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for name, topic in topics.items():
        for index in topic.keys() - {"id", "name"}:
            of = dict(FIELD.findall(_leaf(topic[index])))
            yield (
                (_leaf(topic["id"]), int(index)),
                (
                    name,
                    _numbers(of["replicas"]),
                    _numbers(of["isr"]),
                    int(of["leader"]),
                    int(of["leaderEpoch"]),
                    int(of["partitionEpoch"]),
                    _words(of["directories"]),
                    RECOVERY_STATES[of["leaderRecoveryState"]],
                    _numbers(of["removingReplicas"]),
                    _numbers(of["addingReplicas"]),
                    _numbers(of["elr"]),
                    _numbers(of["lastKnownElr"]),
                ),
            )


def _broker(text: str) -> Any:
    of = dict(FIELD.findall(text.partition("(")[2]))
    rack = of["rack"]
    return (
        int(of["epoch"]),
        of["incarnationId"],
        tuple(sorted(_end_points(of["listeners"]))),
        tuple(_ranges(of["supportedFeatures"])),
        None if rack == "Optional.empty" else rack.removeprefix("Optional[").removesuffix("]"),
        of["fenced"] == "true",
        of["inControlledShutdown"] == "true",
        tuple(sorted(_words(of["directories"]))),
        _words(of["cordonedDirectories"]),
        of["isMigratingZkBroker"] == "true",
    )


def _end_points(text: str) -> Iterator[Any]:
    protocols = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
    for one in text.split("Endpoint(")[1:]:
        of = {name: value.strip("'") for name, value in FIELD.findall(one)}
        yield of["listenerName"], of["host"], int(of["port"]), protocols[of["securityProtocol"]]


def _ranges(text: str) -> Iterator[Any]:
    for one in _words(text):
        name, _, levels = one.partition(": ")
        low, _, high = levels.partition("-")
        yield name, int(low), int(high)


def _configs(resources: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for resource, values in resources.items():
        kind, _, name = resource.partition(":")
        for key, value in values.items():
            yield (int(ResourceType[kind]), name, key), _leaf(value)


def _features(levels: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for name, level in levels.items():
        if name == "metadataVersion":
            yield ("metadata.version",), METADATA_VERSIONS.get(_leaf(level))
        else:
            yield (name.removeprefix("finalized_"),), int(_leaf(level))


def _words(text: str) -> tuple[str, ...]:
    if text == "null":
        return ()
    return tuple(word for word in text[1:-1].split(", ") if word)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, _words(text)))
