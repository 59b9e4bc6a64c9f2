"""Ask several nodes at the same time: one that doesn't answer costs its timeout only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def at_once(ask: Callable[[T], R], asked: Sequence[T]) -> list[R]:
    """Call ``ask`` with each of these, in a thread of its own, and return the results in order. Raises what
    the first of the calls raises that fails.

    The threads don't keep the process: an interruption from the keyboard ends it at once.
    """
    if len(asked) <= 1:
        return [ask(each) for each in asked]
    results: list[Future[R]] = [Future() for _ in asked]
    for result, each in zip(results, asked, strict=True):
        Thread(target=_settle, args=(result, ask, each), daemon=True).start()
    return [result.result() for result in results]


def _settle(result: Future[R], ask: Callable[[T], R], asked: T) -> None:
    try:
        result.set_result(ask(asked))
    except BaseException as error:  # noqa: BLE001 - raised where the result is taken
        result.set_exception(error)
