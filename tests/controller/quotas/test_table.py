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


def few_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "FEW", 5)
    monkeypatch.setattr(table, "MOST", 20)


def fill(entries: BoundedTable[str, list[int]], now_ms: int, prefix: str = "old") -> None:
    for number in range(100):
        entries.find_or_add(f"{prefix}-{number}", list, now_ms).append(now_ms)


def test_a_full_table_forgets_entries_that_are_as_good_as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    few_entries(monkeypatch)
    entries: BoundedTable[str, list[int]] = BoundedTable(lambda entry, now_ms: now_ms - entry[-1] >= 11_000)
    fill(entries, 0)
    assert len(entries) == 21
    entries.find_or_add("old-3", list, 10_000).append(10_000)
    first, second = (entries.find_or_add(name, list, 11_000) for name in ("first", "second"))
    first.append(11_000)
    second.append(11_000)
    assert first is not second, "clients have entries of their own again"
    assert len(entries) == 3
    assert entries.find("old-3") == [0, 10_000]
    assert entries.find("old-4") is entries.find("never seen") is None


def test_a_shared_entry_in_use_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    few_entries(monkeypatch)
    entries: BoundedTable[str, list[int]] = BoundedTable(lambda entry, now_ms: now_ms - entry[-1] >= 11_000)
    fill(entries, 0)
    shared = entries.find("old-50")
    entries.find_or_add("old-50", list, 10_000).append(10_000)
    fill(entries, 11_000, "new")
    assert len(entries) == 21
    assert entries.find("old-50") is entries.find_or_add("new-50", list, 11_000) is shared


@pytest.mark.parametrize("are_new", [False, True])
def test_a_full_table_looks_for_room_once_in_a_sample(monkeypatch: pytest.MonkeyPatch, are_new: bool) -> None:
    few_entries(monkeypatch)
    looked_at: list[int] = []

    def is_new(entry: list[int], now_ms: int) -> bool:
        looked_at.append(now_ms)
        return are_new

    entries: BoundedTable[str, list[int]] = BoundedTable(is_new)
    for now_ms in range(0, 5_000, 250):
        fill(entries, now_ms, f"at-{now_ms}")
    assert set(looked_at) == {0, 1_000, 2_000, 3_000, 4_000}
    assert max(map(looked_at.count, looked_at)) == 21


def test_a_long_client_id_is_known_by_a_digest() -> None:
    quotas = {quota_entity({CLIENT_ID: None}): {"request_percentage": 1.0}}
    one, other = (
        applicable_quota(quotas, "request_percentage", "ann", "x" * 30_000 + end) for end in ("1", "2")
    )
    assert one is not None and other is not None and one.sharers != other.sharers
    assert len(one.sharers.client_id) == LONGEST_NAME
    assert one == applicable_quota(quotas, "request_percentage", "ann", "x" * 30_000 + "1")
