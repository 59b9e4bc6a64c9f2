"""Record which topics a cluster must have, from the answers that its clients got.

A change to a topic is acknowledged, rejected, or unknown if no answer came. An unknown change must be present
completely or not at all. Once it was seen, it must stay.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import msgspec

from compat.harness.waiting import PATIENCE_S


class TopicContent(msgspec.Struct, frozen=True):
    """The partitions and configs of a topic. Configs without partitions are an incomplete topic."""

    partitions: tuple[int, ...]
    configs: dict[str, str]


Topics = Mapping[str, TopicContent]


class Ledger:
    """The possible contents of every topic that a client ever named; None means that it doesn't exist.

    Several threads may write, each about topics of its own.
    """

    def __init__(self) -> None:
        self._possible: dict[str, list[TopicContent | None]] = {}
        self._counted = threading.Condition()
        self.acknowledged_count = 0
        self.unknown_count = 0
        self.refused_count = 0

    def acknowledged(self, name: str, result: TopicContent | None) -> None:
        """Note that the topic has exactly this content."""
        self._possible[name] = [result]
        with self._counted:
            self.acknowledged_count += 1
            self._counted.notify_all()

    def unknown(self, name: str, result: TopicContent | None) -> None:
        """Note that the topic has this content or any that was possible before."""
        self._possible[name] = [*self._possible.get(name, [None]), result]
        self.unknown_count += 1

    def refused(self, name: str) -> None:
        """Note that a change was rejected: nothing has changed."""
        self._possible.setdefault(name, [None])
        self.refused_count += 1

    def settle(self, seen: Topics) -> None:
        """Treat unknown changes that were seen as acknowledged. Others may still come: brokers retry the
        requests that they forward."""
        for name, possible in self._possible.items():
            if len(possible) > 1 and seen.get(name) == possible[-1]:
                self._possible[name] = possible[-1:]

    def violations(self, seen: Topics) -> list[str]:
        """Return a line for each topic that is missing, wrong, or there without a request."""
        wrong = [
            f"{name}: found {_text(seen.get(name))}, expected {' or '.join(map(_text, possible))}"
            for name, possible in sorted(self._possible.items())
            if seen.get(name) not in possible
        ]
        unasked = sorted(set(seen) - set(self._possible))
        return wrong + [f"{name}: found {_text(seen[name])}, which nobody asked for" for name in unasked]

    def wait_for_acknowledged(self, count: int, timeout_s: float = PATIENCE_S) -> None:
        """Wait until ``count`` more changes are acknowledged."""
        with self._counted:
            target = self.acknowledged_count + count
            if not self._counted.wait_for(lambda: self.acknowledged_count >= target, timeout_s):
                short = target - self.acknowledged_count
                raise AssertionError(f"{short} of {count} changes weren't acknowledged in {timeout_s:g} s")


def _text(content: TopicContent | None) -> str:
    if content is None:
        return "nothing"
    configs = ", ".join(f"{key}={value}" for key, value in sorted(content.configs.items()))
    return f"partitions {list(content.partitions)} with {configs or 'no config'}"
