"""Pretend to be a broker: register with a controller and send heartbeats, but store nothing."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Iterable

from compat.harness.processes import ProcessFailed
from compat.harness.waiting import wait_until
from compat.harness.wire import WireClient
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.uuid import Uuid

HEARTBEAT_INTERVAL_S = 0.5
REGISTRATION_VERSION = 4
ALWAYS_CAUGHT_UP = 2**40

_ports = itertools.count(20_000)  # listeners that nobody connects to


class PretendBroker:
    """A registered, unfenced broker. A thread keeps its session alive from construction until ``close``.

    A ``patient`` one, under a controller that can't cope with its load, goes on if it is fenced or gets no
    answer in time, as real brokers do. One that comes back has the ``directory`` that it had before.
    """

    def __init__(
        self,
        node_id: int,
        cluster_id: str,
        controller_port: int,
        *,
        patient: bool = False,
        directory: Uuid | None = None,
    ) -> None:
        self._patient = patient
        self.node_id = node_id
        self._client = WireClient(controller_port, client_id=str(node_id))
        self.directory = random_uuid() if directory is None else directory
        self.epoch = self._register(cluster_id)
        wait_until(lambda: not self._beat().is_fenced, f"pretend broker {node_id} to be unfenced")
        self._closing = threading.Event()
        self._failure: str | None = None
        self._thread = threading.Thread(target=self._keep_alive, name=f"broker-{node_id}", daemon=True)
        self._thread.start()

    def heartbeat(self) -> BrokerHeartbeatRequest:
        return heartbeat(self.node_id, self.epoch)

    def close(self) -> None:
        """Stop the heartbeats; raises ProcessFailed if the controller rejected one or fenced the broker."""
        self._closing.set()
        self._thread.join()
        self._client.close()
        if self._failure is not None:
            raise ProcessFailed(self._failure)

    def _register(self, cluster_id: str) -> int:
        features = supported_features(self._client)
        request = registration(self.node_id, cluster_id, self.directory, features)
        response = self._client.call(request, REGISTRATION_VERSION, BrokerRegistrationResponse)
        if response.error_code != ErrorCode.NONE:
            raise ProcessFailed(f"registration of {self.node_id}: {ErrorCode(response.error_code).name}")
        return response.broker_epoch

    def _beat(self) -> BrokerHeartbeatResponse:
        response = self._client.call(self.heartbeat(), 1, BrokerHeartbeatResponse)
        tolerated = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT) if self._patient else (ErrorCode.NONE,)
        if response.error_code not in tolerated:
            raise ProcessFailed(f"heartbeat of {self.node_id}: {ErrorCode(response.error_code).name}")
        return response

    def _keep_alive(self) -> None:
        while not self._closing.wait(HEARTBEAT_INTERVAL_S):
            try:
                if self._beat().is_fenced and not self._patient:
                    self._failure = f"pretend broker {self.node_id} was fenced"
            except (ProcessFailed, OSError) as failure:
                self._failure = f"pretend broker {self.node_id}: {failure}"
                return


def supported_features(client: WireClient) -> list[SupportedFeatureKey]:
    """Return the features that a controller supports; pretend brokers claim to support the same."""
    request = ApiVersionsRequest(client_software_name="compat", client_software_version="1")
    response = client.call(request, 4, ApiVersionsResponse)
    if response.error_code != ErrorCode.NONE:
        raise ProcessFailed(f"ApiVersions: {ErrorCode(response.error_code).name}")
    return response.supported_features


def registration(
    node_id: int, cluster_id: str, directory: Uuid, features: Iterable[SupportedFeatureKey]
) -> BrokerRegistrationRequest:
    """Return the registration of a new pretend broker."""
    return BrokerRegistrationRequest(
        broker_id=node_id,
        cluster_id=cluster_id,
        incarnation_id=random_uuid(),
        listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=next(_ports))],
        features=[
            Feature(
                name=feature.name,
                min_supported_version=feature.min_version,
                max_supported_version=feature.max_version,
            )
            for feature in features
        ],
        log_dirs=(directory,),
    )


def heartbeat(node_id: int, epoch: int) -> BrokerHeartbeatRequest:
    """Return the heartbeat of a pretend broker that has all metadata."""
    return BrokerHeartbeatRequest(
        broker_id=node_id, broker_epoch=epoch, current_metadata_offset=ALWAYS_CAUGHT_UP, want_fence=False
    )


def random_uuid() -> Uuid:
    """Return the id of a new directory, or of a run of a broker."""
    while (candidate := Uuid.from_random(secrets.token_bytes(16))) and str(candidate).startswith("-"):
        pass
    return candidate
