"""The executor of a node's effects: no effect is dropped."""

from __future__ import annotations

import inspect
from typing import Any, get_args, get_type_hints

import pytest

from kraft_wire.controller.node import effects
from kraft_wire.controller.node.effects import NodeEffect
from kraft_wire.controller.node.executor import EXECUTORS
from kraft_wire.raft.effects import Effect


def test_every_effect_has_an_executor() -> None:
    assert set(EXECUTORS) == set(get_args(NodeEffect))


def test_every_class_of_effects_is_in_the_union() -> None:
    classes = {kind for _, kind in inspect.getmembers(effects, inspect.isclass)}
    own = {kind for kind in classes if kind.__module__ == effects.__name__}
    assert own == set(get_args(NodeEffect)) - set(get_args(Effect))


@pytest.mark.parametrize("kind", EXECUTORS, ids=lambda kind: kind.__name__)
def test_an_executor_takes_the_effects_that_it_stands_for(kind: type[Any]) -> None:
    taken = get_type_hints(EXECUTORS[kind])["effect"]
    assert kind is taken or kind in get_args(taken)
