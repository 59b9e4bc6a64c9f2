from collections import Counter

from kraft_wire.server.entropy import RESERVED_IDS, SystemEntropy


def test_ids_are_usable_and_differ() -> None:
    entropy = SystemEntropy()
    ids = {entropy.uuid() for _ in range(2000)}
    assert len(ids) == 2000
    assert not any(str(id).startswith("-") for id in ids)
    assert min(int.from_bytes(id) for id in ids) >= RESERVED_IDS


def test_numbers_cover_the_range_evenly() -> None:
    entropy = SystemEntropy()
    counts = Counter(entropy.below(5) for _ in range(10_000))
    assert set(counts) == set(range(5))
    assert min(counts.values()) > 1_500


def test_two_processes_draw_differently() -> None:
    assert SystemEntropy().uuid() != SystemEntropy().uuid()
