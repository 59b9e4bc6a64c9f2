from kraft_wire.controller.consumer_fetches import ConsumerFetches, ParkedFetch
from kraft_wire.controller.requests import ApiRequest, Peer
from kraft_wire.protocol.messages.fetch_request import FetchRequest


def _parked(token: str, *, offset: int = 10, deadline_ms: int = 500) -> ParkedFetch:
    request = ApiRequest(
        token, api_key=1, version=11, request=FetchRequest(), peer=Peer(listener="CONTROLLER")
    )
    return ParkedFetch(request, offset, deadline_ms)


def _tokens(fetches: ConsumerFetches, high_watermark: int, now_ms: int) -> list[object]:
    return [fetch.request.token for fetch in fetches.take_ready(high_watermark, now_ms)]


def test_a_fetch_waits_until_something_past_its_offset_is_committed() -> None:
    fetches = ConsumerFetches()
    fetches.park(_parked("a", offset=10))
    assert _tokens(fetches, high_watermark=10, now_ms=0) == []
    assert _tokens(fetches, high_watermark=11, now_ms=0) == ["a"]
    assert _tokens(fetches, high_watermark=11, now_ms=0) == []


def test_a_fetch_is_answered_at_its_deadline() -> None:
    fetches = ConsumerFetches()
    fetches.park(_parked("a", deadline_ms=500))
    fetches.park(_parked("b", deadline_ms=300))
    assert fetches.next_deadline_ms() == 300
    assert _tokens(fetches, high_watermark=0, now_ms=300) == ["b"]
    assert fetches.next_deadline_ms() == 500


def test_an_abandoned_fetch_is_forgotten() -> None:
    fetches = ConsumerFetches()
    fetches.park(_parked("a"))
    fetches.abandon("a")
    fetches.abandon("never parked")
    assert fetches.next_deadline_ms() is None
