from kraft_wire.controller.node.snapshot_policy import SnapshotPolicy


def test_nothing_committed_is_never_due() -> None:
    policy = SnapshotPolicy(max_bytes=100, max_interval_ms=50)
    assert not policy.due(now_ms=1_000_000)
    assert policy.deadline_ms() is None


def test_due_when_enough_bytes_were_committed() -> None:
    policy = SnapshotPolicy(max_bytes=100, max_interval_ms=0)
    policy.committed(60, now_ms=0)
    assert not policy.due(now_ms=1_000_000)
    policy.committed(40, now_ms=1)
    assert policy.due(now_ms=1)


def test_due_when_the_oldest_uncovered_batch_is_old_enough() -> None:
    policy = SnapshotPolicy(max_bytes=1_000_000, max_interval_ms=50)
    policy.committed(1, now_ms=10)
    policy.committed(1, now_ms=40)
    assert policy.deadline_ms() == 60
    assert not policy.due(now_ms=59)
    assert policy.due(now_ms=60)


def test_not_due_again_while_one_is_being_made_and_counts_on_meanwhile() -> None:
    policy = SnapshotPolicy(max_bytes=100, max_interval_ms=0)
    policy.committed(100, now_ms=0)
    policy.started()
    policy.committed(100, now_ms=1)
    assert not policy.due(now_ms=2)
    policy.written()
    assert policy.due(now_ms=3)


def test_starting_forgets_what_the_snapshot_covers() -> None:
    policy = SnapshotPolicy(max_bytes=100, max_interval_ms=50)
    policy.committed(100, now_ms=0)
    policy.started()
    policy.written()
    assert not policy.due(now_ms=1_000_000)


def test_urgent_when_the_log_behind_the_newest_complete_snapshot_is_more_than_twice_as_long() -> None:
    policy = SnapshotPolicy(max_bytes=100, max_interval_ms=0)
    policy.committed(200, now_ms=0)
    assert not policy.is_urgent
    policy.committed(1, now_ms=0)
    assert policy.is_urgent


def test_what_a_failed_snapshot_should_have_covered_still_makes_the_next_one_urgent() -> None:
    policy = SnapshotPolicy(max_bytes=100, max_interval_ms=0)
    policy.committed(150, now_ms=0)
    policy.started()
    policy.committed(100, now_ms=1)
    policy.failed()
    assert policy.due(now_ms=2)
    assert policy.is_urgent
    policy.started()
    policy.written()
    policy.committed(100, now_ms=3)
    assert policy.due(now_ms=3)
    assert not policy.is_urgent


def test_a_fetched_snapshot_covers_what_was_counted_and_what_the_own_one_did_not() -> None:
    policy = SnapshotPolicy(max_bytes=100, max_interval_ms=1000)
    policy.committed(300, 0)
    policy.started()
    policy.committed(50, 10)
    policy.forget()
    policy.failed()
    policy.committed(100, 20)
    assert policy.due(20) and not policy.is_urgent
    assert policy.deadline_ms() == 1020
