"""A table by client doesn't grow without bound, whatever clients call themselves."""

from __future__ import annotations

import pytest

from kraft_wire.controller.quotas import table
from kraft_wire.controller.quotas.applicable import LONGEST_NAME, applicable_quota
from kraft_wire.controller.quotas.table import BoundedTable
from kraft_wire.metadata.quotas import CLIENT_ID, quota_entity


def never_new(entry: list[str], now_ms: int) -> bool:
    return False


def test_clients_beyond_the_limit_share_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MOST", 20)
    entries: BoundedTable[str, list[str]] = BoundedTable(never_new)
    for number in range(1_000):
        entries.find_or_add(f"client-{number}", list, 0).append(str(number))
    assert len(entries) == 21
    assert entries.find("client-3") == ["3"]
    assert entries.find("client-500") is entries.find("never seen") is not None


def test_a_long_client_id_is_known_by_a_digest() -> None:
    quotas = {quota_entity({CLIENT_ID: None}): {"request_percentage": 1.0}}
    one, other = (
        applicable_quota(quotas, "request_percentage", "ann", "x" * 30_000 + end) for end in ("1", "2")
    )
    assert one is not None and other is not None and one.sharers != other.sharers
    assert len(one.sharers.client_id) == LONGEST_NAME
    assert one == applicable_quota(quotas, "request_percentage", "ann", "x" * 30_000 + "1")
