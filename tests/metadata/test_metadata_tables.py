"""The smaller tables: features, configurations, quotas, producer ids, ACLs, credentials, tokens."""

from __future__ import annotations

import pytest

from kraft_wire.metadata.acls import Acl
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.errors import ReplayError
from kraft_wire.metadata.scram import ScramCredential, ScramMechanism
from kraft_wire.metadata.state import MetadataState
from kraft_wire.metadata.tokens import DelegationToken
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.producer_ids_record import ProducerIdsRecord
from kraft_wire.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraft_wire.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraft_wire.protocol.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tests.support.metadata_records import uuid


def after(*records: Message) -> MetadataState:
    state = MetadataState()
    for offset, record in enumerate(records):
        state.replay(record, offset)
    return state


def test_features_and_their_epoch() -> None:
    state = MetadataState()
    assert (state.features.metadata_version, state.features.epoch, state.features.elr_enabled) == (
        0,
        -1,
        False,
    )
    state.replay(FeatureLevelRecord("metadata.version", 33), 1)
    state.replay(FeatureLevelRecord("eligible.leader.replicas.version", 1), 2)
    state.replay(ConfigRecord(4, "", "x", "1"), 9)
    assert state.features.levels == {"metadata.version": 33, "eligible.leader.replicas.version": 1}
    assert (state.features.metadata_version, state.features.epoch) == (33, 2)
    assert state.features.elr_enabled is True
    state.replay(FeatureLevelRecord("eligible.leader.replicas.version", 0), 10)
    assert state.features.levels == {"metadata.version": 33}
    assert state.features.epoch == 10


def test_kraft_version_in_the_log_is_ignored() -> None:
    assert after(FeatureLevelRecord("kraft.version", 1)).features.levels == {}


@pytest.mark.parametrize(
    ("name", "level", "what"),
    [
        ("metadata.version", 35, "only 7 to 34; use a newer release"),
        ("metadata.version", 6, "only 7 to 34"),
        ("metadata.version", 0, "only 7 to 34"),
        ("group.version", 2, "only 0 to 1"),
        ("some.version", 1, "some.version 1 is not supported here, only 0 to 0"),
    ],
)
def test_a_feature_level_that_is_not_supported_is_refused(name: str, level: int, what: str) -> None:
    with pytest.raises(ReplayError, match=what):
        after(FeatureLevelRecord(name, level))


def test_removing_an_unknown_feature_is_harmless() -> None:
    assert after(FeatureLevelRecord("some.version", 0)).features.levels == {}


def test_configurations_are_set_and_deleted_key_by_key() -> None:
    state = after(
        ConfigRecord(ResourceType.TOPIC, "t", "a", "1"),
        ConfigRecord(ResourceType.TOPIC, "t", "b", "2"),
        ConfigRecord(ResourceType.BROKER, "", "a", "3"),
        ConfigRecord(ResourceType.TOPIC, "t", "a", "4"),
        ConfigRecord(ResourceType.TOPIC, "t", "b", None),
        ConfigRecord(ResourceType.TOPIC, "t", "c", None),
    )
    assert state.configs.get(ResourceType.TOPIC, "t") == {"a": "4"}
    assert state.configs.value(ResourceType.BROKER, "", "a") == "3"
    assert state.configs.value(ResourceType.BROKER, "", "b") is None
    assert state.configs.value(ResourceType.GROUP, "g", "b") is None
    assert sorted(state.configs.resources()) == [(2, "t"), (4, "")]
    state.replay(ConfigRecord(ResourceType.TOPIC, "t", "a", None), 9)
    assert list(state.configs.resources()) == [(4, "")]


def test_get_returns_a_copy() -> None:
    state = after(ConfigRecord(ResourceType.TOPIC, "t", "a", "1"))
    state.configs.get(ResourceType.TOPIC, "t")["a"] = "2"
    assert state.configs.get(ResourceType.TOPIC, "t") == {"a": "1"}


def test_quotas_by_entity_whatever_the_order_of_its_parts() -> None:
    user, client = EntityData("user", "u"), EntityData("client-id", None)
    state = after(
        ClientQuotaRecord([user, client], "rate", 1.5, False),
        ClientQuotaRecord([client, user], "burst", 2.5, False),
        ClientQuotaRecord([user], "rate", 3.5, False),
    )
    assert state.quotas.by_entity == {
        (("client-id", None), ("user", "u")): {"rate": 1.5, "burst": 2.5},
        (("user", "u"),): {"rate": 3.5},
    }
    state.replay(ClientQuotaRecord([user, client], "rate", 0.0, True), 9)
    state.replay(ClientQuotaRecord([user], "rate", 0.0, True), 9)
    assert state.quotas.by_entity == {(("client-id", None), ("user", "u")): {"burst": 2.5}}


def test_producer_ids_never_decrease() -> None:
    state = MetadataState()
    assert (state.producer_ids.next_producer_id, state.producer_ids.has_allocated) == (0, False)
    state.replay(ProducerIdsRecord(1, 2, 1000), 0)
    assert (state.producer_ids.next_producer_id, state.producer_ids.has_allocated) == (1000, True)
    with pytest.raises(ReplayError, match="next id 1000 is not above 1000"):
        state.replay(ProducerIdsRecord(1, 2, 1000), 1)


def test_acls_are_added_and_removed_by_id() -> None:
    state = after(AccessControlEntryRecord(uuid(1), 2, "t", 3, "User:u", "*", 3, 2))
    assert state.acls.by_id == {uuid(1): Acl(2, "t", 3, "User:u", "*", 3, 2)}
    state.replay(RemoveAccessControlEntryRecord(uuid(1)), 1)
    assert state.acls.by_id == {}
    with pytest.raises(ReplayError, match="there is no ACL with id"):
        state.replay(RemoveAccessControlEntryRecord(uuid(1)), 2)


def test_credentials_are_kept_by_user_and_mechanism_and_never_shown() -> None:
    state = after(
        UserScramCredentialRecord("u", ScramMechanism.SCRAM_SHA_256, b"salt", b"stored", b"server", 4096),
        UserScramCredentialRecord("u", ScramMechanism.SCRAM_SHA_512, b"salt", b"stored", b"server", 8192),
    )
    assert state.scram.by_user["u", 1] == ScramCredential(b"salt", b"stored", b"server", 4096)
    assert "salt" not in repr(state.scram.by_user)
    state.replay(RemoveUserScramCredentialRecord("u", 1), 2)
    assert list(state.scram.by_user) == [("u", 2)]
    with pytest.raises(ReplayError, match="user 'u' has no credential of mechanism 1"):
        state.replay(RemoveUserScramCredentialRecord("u", 1), 3)


def test_tokens_are_created_renewed_and_removed() -> None:
    state = after(
        DelegationTokenRecord("User:o", "User:r", ("User:a",), 1, 2, 3, "id"),
        DelegationTokenRecord("User:o", "User:r", ("User:a",), 1, 2, 4, "id"),
    )
    assert state.tokens.by_id == {"id": DelegationToken("id", "User:o", "User:r", ("User:a",), 1, 2, 4)}
    state.replay(RemoveDelegationTokenRecord("id"), 2)
    state.replay(RemoveDelegationTokenRecord("id"), 3)
    assert state.tokens.by_id == {}
