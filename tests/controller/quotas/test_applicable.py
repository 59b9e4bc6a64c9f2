"""The most specific quota applies to a client, and says with whom the client shares it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kraft_wire.controller.quotas.applicable import Quota, Quotas, Sharers, applicable_quota
from kraft_wire.metadata.quotas import CLIENT_ID, USER, QuotaEntity, quota_entity

KEY = "controller_mutation_rate"
BOTH, OF_USER, OF_CLIENT = Sharers("ann", "app"), Sharers("ann", ""), Sharers("", "app")

BY_PRECEDENCE: list[tuple[Mapping[str, str | None], Sharers]] = [
    ({USER: "ann", CLIENT_ID: "app"}, BOTH),
    ({USER: "ann", CLIENT_ID: None}, BOTH),
    ({USER: "ann"}, OF_USER),
    ({USER: None, CLIENT_ID: "app"}, BOTH),
    ({USER: None, CLIENT_ID: None}, BOTH),
    ({USER: None}, OF_USER),
    ({CLIENT_ID: "app"}, OF_CLIENT),
    ({CLIENT_ID: None}, OF_CLIENT),
]


def quotas_of(entities: list[QuotaEntity]) -> Quotas:
    return {entity: {KEY: float(number)} for number, entity in enumerate(entities)}


def find(quotas: Quotas, user: str = "ann", client_id: str = "app") -> Quota | None:
    return applicable_quota(quotas, KEY, user, client_id)


@pytest.mark.parametrize("place", range(len(BY_PRECEDENCE)))
def test_the_first_of_kafkas_list_applies(place: int) -> None:
    entities = [quota_entity(names) for names, _ in BY_PRECEDENCE[place:]]
    assert find(quotas_of(entities)) == Quota(0.0, BY_PRECEDENCE[place][1])


def test_without_a_quota_of_this_kind_there_is_none() -> None:
    assert find({}) is None
    assert find({quota_entity({USER: "ann"}): {"request_percentage": 1.0}}) is None
    assert find({quota_entity({USER: "bob"}): {KEY: 1.0}}) is None
    assert find({quota_entity({"ip": None}): {KEY: 1.0}}) is None


def test_a_less_specific_quota_applies_if_the_other_one_is_of_another_kind() -> None:
    quotas = {
        quota_entity({USER: "ann", CLIENT_ID: "app"}): {"request_percentage": 1.0},
        quota_entity({USER: None}): {KEY: 2.0},
    }
    assert find(quotas) == Quota(2.0, OF_USER)


def test_no_quota_of_client_ids_applies_to_an_empty_one() -> None:
    entities = [quota_entity(names) for names, _ in BY_PRECEDENCE if CLIENT_ID in names]
    assert find(quotas_of(entities), client_id="") is None
    assert find(quotas_of([quota_entity({USER: None})]), client_id="") == Quota(0.0, OF_USER)


def test_a_default_of_users_gives_each_user_a_quota_of_its_own() -> None:
    quotas = quotas_of([quota_entity({USER: None})])
    ann, bob = find(quotas, "ann"), find(quotas, "bob")
    assert ann is not None and bob is not None and ann.sharers != bob.sharers
    assert ann == find(quotas, "ann", "another app")
