"""Events in the words of a trace."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from kraft_wire.protocol.messages.vote_response import PartitionData as Vote
from kraft_wire.protocol.messages.vote_response import TopicData, VoteResponse
from kraft_wire.sim.describe import describe_message


@pytest.mark.parametrize(("leader_id", "words"), [(2, "leader 2"), (-1, "no leader")])
def test_an_answer_names_the_leader_if_there_is_one(leader_id: int, words: str) -> None:
    vote = VoteResponse(topics=[TopicData(partitions=[Vote(leader_id=leader_id, leader_epoch=5)])])
    assert describe_message(vote) == f"Vote no error 0 epoch 5 {words}"
    fetched = PartitionData(
        current_leader=LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=5), high_watermark=7
    )
    fetch = FetchResponse(responses=[FetchableTopicResponse(partitions=[fetched])])
    assert describe_message(fetch) == f"Fetch error 0 epoch 5 {words} hw 7 bytes 0"
