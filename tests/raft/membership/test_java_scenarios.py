"""The scenarios of Kafka's tests of voter changes (4.3.1), by the names of their methods. For each there is a
test here with the same name in snake case, or a reason why not."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[3]
MEMBERSHIP = "tests/raft/membership"
QUORUM = "compat/interop/quorum"


class Different(msgspec.Struct, frozen=True):
    """A scenario that this project can't have: why, the words of docs/differences.md that say so, and the
    tests that come nearest."""

    reason: str
    documented: str
    nearest: Sequence[str] = ()


RECONFIG: Mapping[str, Sequence[str]] = {
    f"{MEMBERSHIP}/test_bootstrap_records.py": (
        "testLeaderWritesBootstrapRecords",
        "testBootstrapCheckpointIsNotReturnedOnFetch",
        "testLeaderDoesNotBootstrapRecordsWithKraftVersion0",
        "testFollowerDoesNotRequestLeaderBootstrapSnapshot",
        "testFollowerReadsKRaftBootstrapRecords",
    ),
    f"{MEMBERSHIP}/test_add_voter.py": (
        "testAddVoter",
        "testAddVoterCompletesEarlyWithAckWhenCommittedFalse",
        "testAddVoterInvalidClusterId",
        "testAddVoterToNotLeader",
        "testAddVoterWithMissingDefaultListener",
        "testAddVoterWithPendingAddVoter",
        "testAddVoterWithPendingRemoveVoter",
        "testAddVoterWithoutFencedPreviousLeaders",
        "testAddVoterWithKraftVersion0",
        "testAddVoterWithExistingVoter",
        "testAddVoterTimeout",
        "testAddVoterWithApiVersionsFromIncorrectNode",
        "testAddVoterInvalidFeatureVersion",
        "testAddVoterWithLaggingNewVoter",
        "testAddVoterFailsWhenLosingLeadership",
        "testAddVoterWithMissingDirectoryId",
    ),
    f"{MEMBERSHIP}/test_remove_voter.py": (
        "testRemoveVoter",
        "testRemoveVoterIsLeader",
        "testRemoveVoterInvalidClusterId",
        "testRemoveVoterToNotLeader",
        "testRemoveVoterWithPendingRemoveVoter",
        "testRemoveVoterWithPendingAddVoter",
        "testRemoveVoterWithoutFencedPreviousLeaders",
        "testRemoveVoterWithKraftVersion0",
        "testRemoveVoterWithNoneVoter",
        "testRemoveVoterWithNoneVoterId",
        "testRemoveVoterToEmptyVoterSet",
        "testRemoveVoterTimedOut",
        "testRemoveVoterFailsWhenLosingLeadership",
    ),
    f"{MEMBERSHIP}/test_update_voter.py": (
        "testUpdateVoter",
        "testLeaderUpdatesVoter",
        "testUpdateVoterInvalidClusterId",
        "testInvalidUpdateVoter",
        "testUpdateVoterOldEpoch",
        "testUpdateVoterNewEpoch",
        "testUpdateVoterToNotLeader",
        "testUpdateVoterWithoutFencedPreviousLeaders",
        "testUpdateVoterWithKraftVersion0",
        "testUpdateVoterWithNoneVoter",
        "testUpdateVoterWithNoneVoterId",
        "testUpdateVoterWithPendingAddVoter",
    ),
    f"{MEMBERSHIP}/test_sent_updates.py": (
        "testFollowerSendsUpdateVoter",
        "testFollowerSendsUpdateVoterWithKraftVersion0",
        "testFollowerSendsUpdateVoterAfterElectionWithKraftVersion0",
        "testFollowerSendsUpdateVoterWhenDifferent",
        "testFollowerSendsUpdateVoterIfPendingFetchDuringTimeout",
        "testUpdateVoterResponseCausesEpochChange",
    ),
    f"{MEMBERSHIP}/test_kraft_version.py": (
        "testKRaftUpgradeVersion",
        "testUpdateVoterAfterKRaftVersionUpgrade",
        "testInvalidKRaftUpgradeVersion",
    ),
    "tests/metrics/test_readings.py": ("testLeaderMetricsAreReset",),
    "tests/raft/test_start.py": ("testObserverDiscoversLeaderWithUnknownVoters",),
    "tests/raft/election/test_begin_and_end_epoch.py": ("testHandleBeginQuorumRequestMoreEndpoints",),
}
RECONFIG_DIFFERENT: Mapping[str, Different] = {}
AUTO_JOIN: Mapping[str, Sequence[str]] = {
    f"{MEMBERSHIP}/test_auto_join.py": (
        "testAutoRemoveOldVoter",
        "testAutoAddNewVoter",
        "testObserverRemovesOldVoterAndAutoJoins",
        "testObserverDoesNotAddItselfWhenAutoJoinDisabled",
        "testObserverDoesNotAutoJoinWithKRaftVersion0",
    )
}
AUTO_JOIN_DIFFERENT = {
    "testObserversDoNotAutoJoin": Different(
        "a node that can't become a voter is a broker", "a broker is always Kafka's"
    )
}
INTEGRATION: Mapping[str, Sequence[str]] = {
    f"{QUORUM}/test_reconfigurable_quorum.py": (
        "testCreateAndDestroyNonReconfigurableCluster",
        "testCreateAndDestroyReconfigurableCluster",
        "testRemoveController",
        "testRemoveAndAddSameController",
        "testControllersAutoJoinStandaloneVoter",
        "testNewVoterAutoRemovesAndAdds",
        "testRemoveAndAddVoterWithValidClusterId",
        "testRemoveAndAddVoterWithInconsistentClusterId",
        # From Kafka's trunk.
        "testAddNewControllerFormattedWithFullVoterSet",
    )
}
SCENARIOS = {**RECONFIG, **AUTO_JOIN, **INTEGRATION}
DIFFERENT = {**RECONFIG_DIFFERENT, **AUTO_JOIN_DIFFERENT}
NAMED = [(module, name) for module, names in SCENARIOS.items() for name in names]


def snake_case(name: str) -> str:
    """Return the name of the Python test of a Java method."""
    return re.sub(r"(?<!^)([A-Z]|\d+)", r"_\1", name.replace("KRaft", "Kraft")).lower()


def _tests_in(module: str) -> set[str]:
    tree = ast.parse((ROOT / module).read_text())
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


@pytest.mark.parametrize(
    ("tested", "different", "count"),
    [
        (RECONFIG, RECONFIG_DIFFERENT, 58),
        (AUTO_JOIN, AUTO_JOIN_DIFFERENT, 6),
        (INTEGRATION, {}, 9),
    ],
    ids=["KafkaRaftClientReconfigTest", "KafkaRaftClientAutoJoinTest", "ReconfigurableQuorumIntegrationTest"],
)
def test_no_method_is_left_out(
    tested: Mapping[str, Sequence[str]], different: Mapping[str, Different], count: int
) -> None:
    names = [name for group in tested.values() for name in group] + list(different)
    assert len(names) == len(set(names)) == count


@pytest.mark.parametrize(("module", "name"), NAMED, ids=[name for _, name in NAMED])
def test_the_scenario_has_a_test_of_its_name(module: str, name: str) -> None:
    assert snake_case(name) in _tests_in(module)


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_scenario_that_is_not_here_has_a_reason(name: str) -> None:
    different = DIFFERENT[name]
    assert different.documented in (ROOT / "docs/differences.md").read_text()
    for nearest in different.nearest:
        module, test = nearest.split("::")
        assert test in _tests_in(module)
