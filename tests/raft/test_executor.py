"""The executor of raft's effects: no effect is dropped, and successive appends are one write."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any, cast, get_args, get_type_hints

import pytest

from kraft_wire.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraft_wire.raft import effects
from kraft_wire.raft.effects import AppendBatch, Effect, Reply, ReplyRecords
from kraft_wire.raft.executor import EXECUTORS, execute, execute_all
from kraft_wire.raft.ports import Ports


def test_every_effect_has_an_executor() -> None:
    assert set(EXECUTORS) == set(get_args(Effect))


def test_every_class_of_effects_is_in_the_union() -> None:
    classes = {kind for _, kind in inspect.getmembers(effects, inspect.isclass)}
    assert {kind for kind in classes if kind.__module__ == effects.__name__} == set(get_args(Effect))


@pytest.mark.parametrize("kind", EXECUTORS, ids=lambda kind: kind.__name__)
def test_an_executor_takes_the_effects_that_it_stands_for(kind: type[Any]) -> None:
    taken = get_type_hints(EXECUTORS[kind])["effect"]
    assert kind is taken or kind in get_args(taken)


def append(offset: int) -> AppendBatch:
    return AppendBatch(b"%d" % offset, offset, offset, 1)


class Written:
    """Ports that keep what was written and answered, in order."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.log = SimpleNamespace(append=self.done.append, read=self._read)

    def _read(self, *what: int) -> bytes:
        self.done.append(what)
        return b"records"

    def reply(self, token: object, response: object) -> None:
        self.done.append(token)

    def reply_alike(self, tokens: object, response: object) -> None:
        self.done.append((tokens, response))


def test_successive_appends_are_one_write() -> None:
    written = Written()
    reply = Reply("first", FetchResponse())
    execute_all([append(0), append(1), reply, append(2)], cast(Ports, written))
    assert written.done == [[append(0), append(1)], "first", [append(2)]]


def test_one_append_is_a_write() -> None:
    written = Written()
    execute(append(5), cast(Ports, written))
    assert written.done == [[append(5)]]


def test_records_for_several_are_read_once() -> None:
    written = Written()
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData()])])
    execute(ReplyRecords(("first", "second"), response, 5, 7, 100), cast(Ports, written))
    assert written.done == [(5, 7, 100), (("first", "second"), response)]
    assert response.responses[0].partitions[0].records == b"records"
