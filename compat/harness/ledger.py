"""What a cluster must hold, by what its clients were told.

Every change to a topic is acknowledged, refused, or unknown, where no answer came: an unknown change is
there as a whole or not at all, as long as it was never seen to be there.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import msgspec


class TopicContent(msgspec.Struct, frozen=True):
    """What there is of a topic. Configs without partitions would be half of one."""

    partitions: tuple[int, ...]
    configs: dict[str, str]


Contents = Mapping[str, TopicContent]


class Ledger:
    """For every topic that was ever asked for, what there may be of it: None is nothing. Several threads may
    write, each of topics of its own."""

    def __init__(self) -> None:
        self._possible: dict[str, list[TopicContent | None]] = {}
        self._counted = threading.Condition()
        self.acknowledged_count = 0
        self.unknown_count = 0
        self.refused_count = 0

    def acknowledged(self, name: str, result: TopicContent | None) -> None:
        """There is this of it, and nothing else."""
        self._possible[name] = [result]
        with self._counted:
            self.acknowledged_count += 1
            self._counted.notify_all()

    def unknown(self, name: str, result: TopicContent | None) -> None:
        """There is this of it, or what was there before."""
        self._possible[name] = [*self._possible.get(name, [None]), result]
        self.unknown_count += 1

    def refused(self, name: str) -> None:
        """Nothing has changed."""
        self._possible.setdefault(name, [None])
        self.refused_count += 1

    def settle(self, seen: Contents) -> None:
        """What was seen to be there can't be undone. What wasn't may still come: brokers repeat what they
        pass on to a controller."""
        for name, possible in self._possible.items():
            if len(possible) > 1 and seen.get(name) == possible[-1]:
                self._possible[name] = possible[-1:]

    def violations(self, seen: Contents) -> list[str]:
        """What is there and may not be, and what isn't and must; a line each."""
        wrong = [
            f"{name}: there is {_text(seen.get(name))}, not {' or '.join(map(_text, possible))}"
            for name, possible in sorted(self._possible.items())
            if seen.get(name) not in possible
        ]
        unasked = sorted(set(seen) - set(self._possible))
        return wrong + [f"{name}: there is {_text(seen[name])}, which nobody asked for" for name in unasked]

    def wait_for_acknowledged(self, count: int, timeout_s: float = 60.0) -> None:
        """Wait until so many changes more are acknowledged."""
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
