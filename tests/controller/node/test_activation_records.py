"""The first records of an active controller: the scenarios of ActivationRecordsGeneratorTest."""

from __future__ import annotations

import pytest

from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.node.activation import ActivationError, activation_result, no_op_record
from kraft_wire.metadata.features.supported import bootstrap_records
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from tests.controller.controller_harness import Harness

ELR = "eligible.leader.replicas.version"


def activate(harness: Harness, bootstrap: list[VersionedRecord]) -> tuple[list[str], bool]:
    """Replay the activation records. Returns their names and whether they must be in one batch."""
    result = activation_result(harness.state, bootstrap, harness.context())
    harness.replay(result.records)
    return [record.NAME for record, _ in result.records], result.atomic


def level(number: int) -> list[VersionedRecord]:
    return [(FeatureLevelRecord("metadata.version", number), 0)]


def test_an_empty_log_gets_the_bootstrap_in_a_transaction() -> None:
    harness = Harness(0)
    assert activate(harness, level(14)) == (
        ["BeginTransactionRecord", "FeatureLevelRecord", "EndTransactionRecord"],
        False,
    )
    assert harness.metadata.features.metadata_version == 14
    assert not harness.metadata.in_transaction


def test_before_3_6_there_are_no_transactions_so_it_is_one_batch() -> None:
    harness = Harness(0)
    assert activate(harness, level(12)) == (["FeatureLevelRecord"], True)


def test_with_eligible_leader_replicas_min_isr_is_fixed_for_the_cluster() -> None:
    harness = Harness(0, static_configs={"min.insync.replicas": "2"})
    names, _ = activate(harness, [*bootstrap_records(33, {ELR: 1})])
    assert names[0] == "BeginTransactionRecord"
    assert names[-2:] == ["ConfigRecord", "EndTransactionRecord"]
    assert harness.metadata.configs.get(4, "") == {"min.insync.replicas": "2"}


def test_the_default_of_min_isr_is_kafkas() -> None:
    harness = Harness(0)
    activate(harness, [*bootstrap_records(33, {ELR: 1})])
    assert harness.metadata.configs.get(4, "") == {"min.insync.replicas": "1"}


def test_a_log_with_metadata_gets_nothing() -> None:
    assert activate(Harness(33), level(33)) == ([], True)
    assert activate(Harness(7), level(33)) == ([], True)


def test_an_open_transaction_is_aborted() -> None:
    harness = Harness(33)
    value = ConfigRecord(resource_type=4, resource_name="", name="message.max.bytes", value="1")
    harness.replay([(BeginTransactionRecord(name="later"), 0), (value, 0)])
    assert activate(harness, level(33)) == (["AbortTransactionRecord"], True)
    assert not harness.metadata.in_transaction
    assert harness.metadata.configs.get(4, "") == {}
    assert harness.metadata.features.metadata_version == 33


@pytest.mark.parametrize("written", [0, 1])
def test_a_partial_bootstrap_is_aborted_and_written_again(written: int) -> None:
    """The records are the same whether or not the log has feature levels of the lost controller."""
    harness = Harness(0)
    harness.replay([(BeginTransactionRecord(name="Bootstrap records"), 0), *level(14)[:written]])
    assert activate(harness, level(14)) == (
        ["AbortTransactionRecord", "BeginTransactionRecord", "FeatureLevelRecord", "EndTransactionRecord"],
        False,
    )
    assert harness.metadata.features.metadata_version == 14
    assert not harness.metadata.in_transaction


@pytest.mark.parametrize(("logged", "bootstrap"), [(12, 12), (0, 12)])
def test_an_open_transaction_below_3_6_means_a_damaged_log(logged: int, bootstrap: int) -> None:
    harness = Harness(logged)
    harness.replay([(BeginTransactionRecord(name="impossible"), 0)])
    with pytest.raises(ActivationError, match="transaction is open"):
        activation_result(harness.state, level(bootstrap), harness.context())


def test_a_bootstrap_without_metadata_version_is_refused() -> None:
    with pytest.raises(ActivationError, match="format"):
        activation_result(
            Harness(0).state, [(FeatureLevelRecord("group.version", 1), 0)], Harness(0).context()
        )


def test_a_completed_transaction_is_left_alone() -> None:
    harness = Harness(33)
    harness.replay([(BeginTransactionRecord(name="x"), 0), (EndTransactionRecord(), 0)])
    assert activate(harness, level(33)) == ([], True)


def test_a_no_op_moves_the_end_of_the_log_and_nothing_else() -> None:
    harness = Harness(33)
    before = harness.metadata.features.epoch
    harness.replay([no_op_record()])
    assert harness.metadata.last_applied_offset == harness.state.next_offset - 1
    assert harness.metadata.features.epoch == before
