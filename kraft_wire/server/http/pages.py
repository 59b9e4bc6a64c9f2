"""Answer requests for metrics and health. No I/O: the caller gives the values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kraft_wire.metrics.health import Check

TEXT: Final = "text/plain; charset=utf-8"
SAMPLES_AT_ONCE: Final = 250
"""To encode a sample takes some 6 µs; a family isn't divided."""
END: Final = b"# EOF\n"
"""The end of an OpenMetrics text, which each piece gets."""
METHODS: Final = ("GET", "HEAD")


class Answer(msgspec.Struct, frozen=True):
    """A response: its status, its body in pieces, and the headers that the body needs. Each piece of a long
    body is made when it is asked for: others get their turn in between."""

    status: int
    body: Iterable[bytes]
    content_type: str = TEXT
    allow: str | None = None


class Pages:
    """The pages of one node. ``metrics`` and ``checks`` read it."""

    def __init__(
        self, metrics: Callable[[], Iterable[Metric]], checks: Callable[[], Sequence[Check]]
    ) -> None:
        self._metrics = metrics
        self._checks = checks

    def answer(self, method: str, target: str, accept: str) -> Answer:
        """Return the answer to a request. ``accept`` is the value of that header, empty if there is none."""
        page = _PAGES.get(target.partition("?")[0])
        if page is None:
            return Answer(404, [b"not found: ask for /metrics, /livez or /readyz\n"])
        if method not in METHODS:
            allow = ", ".join(METHODS)
            return Answer(405, [f"only {allow}\n".encode()], allow=allow)
        return page(self, accept)

    def _show_metrics(self, accept: str) -> Answer:
        encode, content_type = choose_encoder(accept)
        return Answer(200, self._encoded(encode), content_type)

    def _encoded(self, encode: Callable[[Collector], bytes]) -> Iterator[bytes]:
        """Yield the metrics in pieces. All of them are read before the first one."""
        families: list[Metric] = []
        samples = 0
        for family in self._metrics():
            families.append(family)
            samples += len(family.samples)
            if samples >= SAMPLES_AT_ONCE:
                yield encode(_Families(families)).removesuffix(END)
                families, samples = [], 0
        yield encode(_Families(families))

    def _show_life(self, accept: str) -> Answer:
        return Answer(200, [b"the event loop runs: ok\n"])

    def _show_readiness(self, accept: str) -> Answer:
        checks = self._checks()
        status = 200 if all(check.problem is None for check in checks) else 503
        return Answer(status, [f"{check}\n".encode() for check in checks])


class _Families(Collector):
    """A registry for prometheus_client's encoders: they only collect its metrics."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


_PAGES: Final[dict[str, Callable[[Pages, str], Answer]]] = {
    "/metrics": Pages._show_metrics,
    "/livez": Pages._show_life,
    "/readyz": Pages._show_readiness,
}
