"""Limit how many partitions a client creates and deletes in a second (KIP-599).

Each client, or all clients that share a quota, have a bucket of tokens, one for each partition. It fills at
the quota's rate up to what comes in the whole window. A client may take more tokens than there are: then it
waits until the bucket isn't below zero any more (Kafka's ControllerMutationQuotaManager, TokenBucket).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from kraft_wire.controller.quotas.applicable import Quotas, Sharers, applicable_quota
from kraft_wire.controller.quotas.table import BoundedTable
from kraft_wire.metadata.quotas import CONTROLLER_MUTATION_RATE
from kraft_wire.protocol.errors import ApiError, ErrorCode

WINDOW_S: Final = 11
"""Kafka's controller.quota.window.num times controller.quota.window.size.seconds, by default."""
MOST_MS: Final = (1 << 31) - 1
"""The longest time that a response can name."""


class TokenBucket:
    """Tokens that come at ``rate`` a second. There are fewer than none while a client has taken too many."""

    def __init__(self, rate: float, window_s: float, now_ms: int) -> None:
        self.rate = rate
        self.tokens = rate * window_s
        self._window_s = window_s
        self._filled_ms = now_ms

    def fill(self, now_ms: int) -> None:
        """Add the tokens that came since the last time."""
        came = self.rate * (now_ms - self._filled_ms) / 1000
        self.tokens = min(self.rate * self._window_s, self.tokens + came)
        self._filled_ms = now_ms

    def is_full(self, now_ms: int) -> bool:
        """Whether the bucket is as full as a new one."""
        self.fill(now_ms)
        return self.tokens >= self.rate * self._window_s

    @property
    def empty_for_ms(self) -> int:
        """The time until the client may take tokens again."""
        if self.tokens >= 0:
            return 0
        missing = -self.tokens * 1000
        return round(missing / self.rate) if missing < self.rate * MOST_MS else MOST_MS


class MutationQuota:
    """What one request may create and delete: anything without a ``bucket``.

    A strict quota refuses what the client has no tokens for. Another one only says how long to wait with the
    next request: ``throttle_time_ms``, which is 0 if the client needn't wait.
    """

    def __init__(self, bucket: TokenBucket | None, *, is_strict: bool) -> None:
        self._bucket = bucket
        self._is_strict = is_strict
        self._counts = True
        self.throttle_time_ms = 0

    def go_on(self, now_ms: int, *, counts: bool) -> None:
        """Begin another step of the request, in which nothing is spent unless it ``counts``."""
        self._counts = counts
        if self._bucket is not None:
            self._bucket.fill(now_ms)

    def spend(self, partitions: int) -> None:
        """Spend the tokens of so many partitions. Raises ApiError(THROTTLING_QUOTA_EXCEEDED)."""
        bucket = self._bucket
        if bucket is None or not self._counts:
            return
        if self._is_strict and bucket.tokens < 0:
            self.throttle_time_ms = bucket.empty_for_ms
            raise ApiError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"the client has changed more partitions than {CONTROLLER_MUTATION_RATE}={bucket.rate:g} "
                f"allows; try again in {bucket.empty_for_ms} ms",
            )
        bucket.tokens -= partitions
        if not self._is_strict:
            self.throttle_time_ms = bucket.empty_for_ms


class MutationQuotas:
    """The buckets of all clients with a quota. They are full at first, with the tokens of a window."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._buckets: BoundedTable[Sharers, TokenBucket] = BoundedTable(TokenBucket.is_full)

    def of(self, quotas: Quotas, user: str, client_id: str, now_ms: int, *, is_strict: bool) -> MutationQuota:
        """Return the quota for a request of this client."""
        quota = applicable_quota(quotas, CONTROLLER_MUTATION_RATE, user, client_id)
        if quota is None:
            return MutationQuota(None, is_strict=is_strict)
        make = partial(TokenBucket, quota.limit, self._window_s, now_ms)
        bucket = self._buckets.find_or_add(quota.sharers, make, now_ms)
        bucket.rate = quota.limit
        bucket.fill(now_ms)
        return MutationQuota(bucket, is_strict=is_strict)
