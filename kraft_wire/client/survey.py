"""Ask given controllers themselves whether they lead or not, all at the same time.

No API of Kafka's shows the state of a controller that doesn't lead. Every controller tells some of it:

- Fetch with an epoch that is over is refused by each controller, with the leader and the epoch that it
  knows. `kraft-wire observe`, which serves no Vote, names itself to readers: it doesn't count.
- ApiVersions has the APIs that it serves, the features that it supports, and those of its metadata, among
  them kraft.version.
- DescribeCluster has the controllers that its metadata has as registered.
- DescribeConfigs has the settings of the controller itself, if it is asked by its own node id.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from kraft_wire.client import questions
from kraft_wire.client.at_once import at_once
from kraft_wire.client.connection import Connection, Connector, connected
from kraft_wire.client.errors import QuorumError, reason_of
from kraft_wire.client.quorum import SILENT_SHARE
from kraft_wire.client.quorum_description import QuorumDescription, describe_quorum, read_describe_quorum
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.log.control import KRAFT_VERSION
from kraft_wire.protocol.errors import ErrorCode, ProtocolError
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.wire.address import Address

FINISHED_EPOCH: Final = 0
"""No leader has this epoch: a Fetch with it is refused, and the refusal names the current epoch."""
BROKER: Final = 4
"""The resource type of a node's own settings (ConfigResource.Type.BROKER)."""
STATIC_BROKER_CONFIG: Final = 4
"""The source of a setting that the node was started with (DescribeConfigsResponse.ConfigSource)."""
SPLIT_AFTER_S: Final = 5.0
"""A leader that no majority fetches from resigns after one and a half fetch timeouts, which are 3 seconds."""
ASK_AGAIN_S: Final = 0.2


class NodeAnswer(msgspec.Struct, frozen=True):
    """What one controller says of itself and of its quorum.

    ``problem`` says why it couldn't be asked; all else is unknown then. ``description`` is there if it leads.
    ``registrations`` is None if it doesn't say. ``features`` are the levels that it supports, lowest and
    highest; ``levels`` are those that are finalized in its metadata; ``apis`` are the keys of the APIs that
    it serves. ``is_silent``: nothing answers at the address at all. ``is_mute``: something accepts
    connections there, and says nothing in time, as a suspended process.
    """

    address: Address
    problem: str = ""
    is_silent: bool = False
    is_mute: bool = False
    leader_id: int = -1
    epoch: int = -1
    leader_address: Address | None = None
    kraft_version: int | None = None
    cluster_id: str | None = None
    registrations: dict[int, Address] | None = None
    description: QuorumDescription | None = None
    features: dict[str, tuple[int, int]] = {}
    levels: dict[str, int] = {}
    apis: frozenset[int] = frozenset()

    @property
    def is_unheard(self) -> bool:
        """Whether nothing at the address says anything: the process has ended or hangs."""
        return self.is_silent or self.is_mute

    @property
    def leads(self) -> bool:
        return self.description is not None


def survey(settings: QuorumSettings, addresses: Iterable[Address] | None = None) -> list[NodeAnswer]:
    """Ask each of these controllers, by default those of the settings, and return their answers in order."""
    timeout_s = settings.request_timeout_ms / 1000
    connector = Connector(settings.security, timeout_s / SILENT_SHARE)
    wanted = settings.bootstrap if addresses is None else addresses
    return at_once(lambda address: _ask(connector, address, timeout_s), list(wanted))


def with_named_leaders(
    ask: Callable[[Sequence[Address]], list[NodeAnswer]], addresses: Iterable[Address]
) -> list[NodeAnswer]:
    """Return the answers of these controllers, and of the leaders that any of them names, until no new one is
    named. A leader need not be among those that somebody knows of."""
    answers: list[NodeAnswer] = []
    asked: set[Address] = set()
    wanted = sorted(set(addresses))
    while wanted:
        asked.update(wanted)
        answers += ask(wanted)
        named = {answer.leader_address for answer in answers if answer.leader_address is not None}
        wanted = sorted(named - asked)
    return answers


def clusters_among(answers: Iterable[NodeAnswer]) -> dict[str, list[Address]]:
    """Return the clusters that these controllers say they are of, with the controllers' addresses."""
    found: dict[str, list[Address]] = {}
    for answer in answers:
        if answer.cluster_id is not None:
            found.setdefault(answer.cluster_id, []).append(answer.address)
    return found


def leaders_among(answers: Iterable[NodeAnswer]) -> list[NodeAnswer]:
    """Return an answer of each leader, the one of the latest epoch first. A leader may answer at several
    addresses."""
    leading = {(answer.epoch, answer.leader_id): answer for answer in answers if answer.leads}
    return [answer for _, answer in sorted(leading.items(), reverse=True)]


def confirmed_leaders(settings: QuorumSettings, answers: Sequence[NodeAnswer]) -> list[NodeAnswer]:
    """Return the leaders among these controllers, as ``leaders_among`` does.

    Several are asked again for ``SPLIT_AFTER_S``. An election between two answers makes one leader look like
    two, and a leader that is cut off from its voters goes on for a moment.
    """
    leaders = leaders_among(answers)
    deadline_s = time.monotonic() + SPLIT_AFTER_S
    while len(leaders) > 1 and time.monotonic() < deadline_s:
        time.sleep(ASK_AGAIN_S)
        leaders = leaders_among(survey(settings, [leader.address for leader in leaders]))
    return leaders


def setting_of(settings: QuorumSettings, address: Address, node_id: int, key: str) -> str | None:
    """Return a setting of the controller at an address, as it has it; None if it doesn't say."""
    found = _described(settings, address, node_id, (key,))
    values = [config.value for config in found or () if config.name == key]
    return values[0] if values else None


def static_settings_of(settings: QuorumSettings, address: Address, node_id: int) -> dict[str, str] | None:
    """Return the properties that the controller or broker at an address was started with, without secrets and
    without keys that Kafka doesn't define; None if it doesn't say."""
    found = _described(settings, address, node_id, None)
    if not found:
        return None
    return {
        config.name: config.value
        for config in found
        if config.config_source == STATIC_BROKER_CONFIG and config.value is not None
    }


def _described(
    settings: QuorumSettings, address: Address, node_id: int, keys: tuple[str, ...] | None
) -> list[DescribeConfigsResourceResult] | None:
    """Return a node's own settings, those with these keys or all; None if it doesn't say."""
    connector = Connector(settings.security, settings.request_timeout_ms / 1000 / SILENT_SHARE)
    timeout_s = settings.request_timeout_ms / 1000
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(node_id), configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=[resource])
    try:
        connection = connector.open(address, timeout_s)
    except (OSError, ProtocolError, QuorumError):
        return None
    try:
        response = connection.call(request, DescribeConfigsResponse, timeout_s)
    except (OSError, ProtocolError, QuorumError):
        return None
    finally:
        connection.close()
    return [config for result in response.results for config in result.configs]


def _ask(connector: Connector, address: Address, timeout_s: float) -> NodeAnswer:
    try:
        connection = connector.open(address, timeout_s)
    except OSError as error:
        listens = _listens(address, timeout_s / SILENT_SHARE)
        is_mute = listens and isinstance(error, TimeoutError)
        return NodeAnswer(address, reason_of(error), is_silent=not listens, is_mute=is_mute)
    except (ProtocolError, QuorumError) as error:
        return NodeAnswer(address, str(error))
    try:
        return _answers(connection, address, timeout_s)
    except TimeoutError as error:
        return NodeAnswer(address, reason_of(error), is_mute=True)
    except (OSError, ProtocolError, QuorumError) as error:
        return NodeAnswer(address, reason_of(error))
    finally:
        connection.close()


def _listens(address: Address, timeout_s: float) -> bool:
    """Whether anything accepts connections at an address: also a process that is suspended does."""
    try:
        connected(address, timeout_s).close()
    except OSError:
        return False
    return True


def _answers(connection: Connection, address: Address, timeout_s: float) -> NodeAnswer:
    versions = connection.call(
        ApiVersionsRequest(client_software_name="kraft-wire", client_software_version="1"),
        ApiVersionsResponse,
        timeout_s,
    )
    cluster = questions.read_describe_cluster(
        connection.call(questions.describe_cluster(), DescribeClusterResponse, timeout_s)
    )
    fetch = questions.fetch(None, FINISHED_EPOCH, 0, 0, 1)
    refused = questions.read_fetch(connection.call(fetch, FetchResponse, timeout_s))
    described = read_describe_quorum(connection.call(describe_quorum(), DescribeQuorumResponse, timeout_s))
    levels = {feature.name: feature.max_version_level for feature in versions.finalized_features}
    knows = cluster.error == ErrorCode.NONE
    apis = frozenset(api.api_key for api in versions.api_keys)
    leader = refused.hint if VoteRequest.API_KEY in apis else questions.NO_LEADER
    return NodeAnswer(
        address,
        leader_id=leader.leader_id,
        epoch=leader.epoch,
        leader_address=leader.address,
        kraft_version=levels.get(KRAFT_VERSION),
        cluster_id=cluster.cluster_id if knows else None,
        registrations=cluster.controllers if knows else None,
        description=described if described.error == ErrorCode.NONE else None,
        features={
            feature.name: (feature.min_version, feature.max_version)
            for feature in versions.supported_features
        },
        levels=levels,
        apis=apis,
    )
