"""The event loop of a simulated process."""

from __future__ import annotations

from kraft_wire.sim.machines.event_loop import EventLoop


class Process:
    """A process that notes what it does, in its order."""

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.done: list[str] = []

    def get(self, *names: str) -> None:
        for name in names:
            self.loop.when_free(self.done.append, name)

    def get_step(self) -> None:
        self.loop.when_free(self.loop.begin_step)

    def end_step(self, name: str) -> None:
        self.loop.end_step(self.done.append, name)


def test_a_free_process_acts_at_once() -> None:
    process = Process()
    process.get("a")
    assert process.done == ["a"]


def test_what_comes_during_a_step_waits_for_its_effects() -> None:
    process = Process()
    process.get_step()
    process.get("a", "b")
    assert process.done == []
    process.end_step("effects")
    assert process.done == ["effects", "a", "b"]


def test_the_next_step_holds_up_what_comes_after_it() -> None:
    process = Process()
    process.get_step()
    process.get("a")
    process.get_step()
    process.get("b")
    process.end_step("effects")
    assert process.done == ["effects", "a"]
    process.end_step("more effects")
    assert process.done == ["effects", "a", "more effects", "b"]


def test_what_is_caused_while_others_wait_comes_last() -> None:
    process = Process()
    process.get_step()
    process.loop.when_free(process.get, "caused")
    process.get("a")
    process.end_step("effects")
    assert process.done == ["effects", "a", "caused"]


def test_a_step_of_a_suspended_process_ends_when_it_continues() -> None:
    process = Process()
    process.get_step()
    process.get("a")
    process.loop.pause()
    process.end_step("effects")
    assert process.done == []
    process.loop.resume()
    assert process.done == ["effects", "a"]


def test_a_process_that_continues_first_ends_its_step() -> None:
    process = Process()
    process.get_step()
    process.get("a")
    process.loop.pause()
    process.loop.resume()
    assert process.done == []
    process.end_step("effects")
    assert process.done == ["effects", "a"]


def test_a_process_that_ends_forgets_everything() -> None:
    process = Process()
    process.get_step()
    process.get("a")
    process.loop.pause()
    process.loop.reset()
    process.get("b")
    assert process.done == ["b"]
