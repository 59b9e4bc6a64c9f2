"""Handlers and periodic tasks change nothing: they decide on a state that refuses writes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, NoReturn

import msgspec
import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.decision.api_table import AnsweredBy
from kraft_wire.controller.decision.context import ControllerState, Result
from kraft_wire.controller.decision.sessions import BrokerSessions
from kraft_wire.controller.node.periodic_tasks import periodic_tasks
from kraft_wire.controller.settings import Settings
from kraft_wire.metadata.canonical import fingerprint
from kraft_wire.metadata.journal import Journal
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ApiError, ErrorCode
from tests.controller.decision.decision_samples import FAILING, SUCCEEDING, Sample, SampleCluster

SAMPLES = [
    pytest.param(name, sample, succeeds, id=f"{name}-{'succeeds' if succeeds else 'fails'}-{number}")
    for succeeds, samples in ((True, SUCCEEDING), (False, FAILING))
    for name, each in samples.items()
    for number, sample in enumerate(each)
]
WRITES = {
    Journal: ("add", "put", "drop", "undo_to", "undo_with_redo", "redo", "forget_below", "clear"),
    MetadataState: ("replay", "replay_values", "undo_to", "forget_below"),
    BrokerSessions: ("apply", "activate", "forgive"),
}


def _refuse(*arguments: object, **named: object) -> NoReturn:
    raise AssertionError("a decision writes to the state")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[SampleCluster]:
    """A cluster whose state refuses writes. Afterwards it has to be as it was."""
    sample = SampleCluster()
    sessions: Any = sample.state.sessions
    before = _contents(sample.state)
    sessions._sessions = MappingProxyType(sessions._sessions)
    for owner, names in WRITES.items():
        for name in names:
            monkeypatch.setattr(owner, name, _refuse)
    yield sample
    monkeypatch.undo()
    assert _contents(sample.state) == before


def _contents(state: ControllerState) -> tuple[object, ...]:
    """Everything that a decision could change, by value."""
    sessions: Any = state.sessions
    others = {
        name: value
        for name, value in msgspec.structs.asdict(state).items()
        if name not in ("metadata", "sessions")
    }
    return (
        fingerprint(state.metadata),
        state.metadata.last_applied_offset,
        copy.deepcopy(dict(sessions._sessions)),
        others,
    )


def _error_codes(response: object) -> Iterator[int]:
    """Every error code in a response in JSON form."""
    if isinstance(response, dict):
        for key, value in response.items():
            if key == "errorCode":
                yield value
            yield from _error_codes(value)
    elif isinstance(response, list):
        for item in response:
            yield from _error_codes(item)


def test_every_handler_has_samples() -> None:
    with_handler = {api.name for api in CONTROLLER_APIS if api.module}
    assert FAILING.keys() == with_handler - {"ListPartitionReassignments"}
    assert SUCCEEDING.keys() == with_handler - {"Produce"}


@pytest.mark.parametrize(("name", "sample", "succeeds"), SAMPLES)
def test_a_handler_changes_nothing(cluster: SampleCluster, name: str, sample: Sample, succeeds: bool) -> None:
    request = sample(cluster)
    api = CONTROLLER_APIS[request.API_KEY]
    version = 12 if name == "Produce" else api.max_version
    assert api.name == name
    try:
        result = api.decide(cluster.state, request, version, cluster.context())
    except ApiError:
        assert not succeeds
        return
    assert isinstance(result, Result) and result.response is not None
    codes = set(_error_codes(result.response.to_json(version)))
    if succeeds:
        assert codes - {ErrorCode.LEADER_NOT_AVAILABLE.value} <= {0}
        is_write = api.answered_by is AnsweredBy.ACTIVE_CONTROLLER
        assert bool(result.records or result.session_changes) == is_write
    else:
        assert codes - {0}
        assert not result.records


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_periodic_task_changes_nothing(cluster: SampleCluster, is_silent: bool) -> None:
    if is_silent:
        cluster.silence()
    tasks = periodic_tasks(Settings(node_id=1))
    assert {task.name for task in tasks} == {
        "fence stale brokers", "elect unclean leaders", "write a no-op", "balance leaders",
        "remove expired tokens",
    }  # fmt: skip
    rounds = {task.name: task.run(cluster.state, cluster.context()) for task in tasks}
    assert bool(rounds["fence stale brokers"].session_changes) == is_silent
    assert rounds["balance leaders"].records
