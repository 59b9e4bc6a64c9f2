"""Start Java's controller and ours, play a script to both, and compare each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from compat.harness.kafka.cluster import NEWEST_KAFKA, random_cluster_id
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.nodes import JvmController, OurController
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until
from compat.harness.wire import ConnectionClosed, WireClient
from compat.judges.behaviour.forms import Form, codes_in, form_of, opened
from compat.judges.behaviour.known import CONTROLLER_ID, TOKEN_SECRET, Known
from compat.judges.behaviour.outcome import CLOSED, Asked, Outcome
from compat.judges.behaviour.played import Answered, Difference, Played
from compat.judges.behaviour.rules import compared
from compat.judges.behaviour.set_aside import why_last, why_not_compared, why_set_aside
from compat.judges.behaviour.steps import AnyStep, Beat, CreateToken, RenewToken
from kraft_wire.client.live_log import LiveLog
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.log.batch import iter_records, split_batches
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.protocol.registry import api_name, response_class
from kraft_wire.wire.address import Address

FIRST_WITH_CONTROLLERS: Final = 15
"""The first metadata.version with registrations of controllers."""
REGISTRATIONS: Final = frozenset({"RegisterBrokerRecord", "BrokerRegistrationChangeRecord"})
TOKENS: Final = frozenset({"DelegationTokenRecord", "RemoveDelegationTokenRecord"})
RENEW_VERSION: Final = 2
STRANGER: Final = "a stranger"
"""A user who may change no token."""
PROPERTIES: Final = {
    # nothing happens by itself
    "metadata.max.idle.interval.ms": "0",
    "broker.session.timeout.ms": "3600000",
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.interval.ms": "3600000",
    "controller.quorum.append.linger.ms": "0",
    "delegation.token.secret.key": TOKEN_SECRET,
}


class Side:
    """One controller, and what it has told."""

    def __init__(
        self, controller: JvmController | OurController, cluster_id: str, properties: Mapping[str, str]
    ) -> None:
        self._controller = controller
        self.deletes_topics = properties.get("delete.topic.enable") != "false"
        self.known = Known(cluster_id)
        self._client = WireClient(controller.port, client_id="judge")
        settings = QuorumSettings((Address(controller.place.host, controller.port),), cluster_id=cluster_id)
        self._quorum = QuorumClient(settings)
        self._log = LiveLog(self._quorum)
        wait_until(self._is_registered, f"{controller.name} to be registered")

    def _is_registered(self) -> bool:
        self._read()
        level = self.known.state.features.metadata_version
        return CONTROLLER_ID in self.known.state.controllers or 0 < level < FIRST_WITH_CONTROLLERS

    def close(self) -> None:
        self._client.close()
        self._quorum.close()

    def play(self, step: AnyStep) -> Answered:
        """Send a step, and read what was written for it."""
        message = step.message(self.known)
        api, newest = api_name(message.API_KEY), CONTROLLER_APIS[message.API_KEY].max_version
        asked_version = newest if step.version is None else step.version
        sent, version = step.sent(self.known, newest)
        answer: Form = CLOSED
        try:
            response: Message = self._client.call(sent, version, response_class(sent.API_KEY))
        except ConnectionClosed:
            self._client.close()
            self._client = WireClient(self._controller.port, client_id="judge")
            records = self._read()
        else:
            response, version = opened(response, version, (message.API_KEY, asked_version))
            self._remember(step, response)
            records = self._read()
            answer = form_of(response, version, self.known)
        self._settle(records)
        outcome = Outcome(answer, records)
        return Answered(api, asked_version, step.user is not None, outcome, tuple(codes_in(answer)))

    def _settle(self, records: Sequence[Form]) -> None:
        """Let happen what would happen before the next step, as brokers send heartbeats all the time.

        Java's controller forgets which metadata a broker has when the registration changes, until the next
        one. It finds a token only when its cache has it, some milliseconds after the record.
        """
        if any(record["name"] in TOKENS for record in records):
            wait_until(self._has_cached_tokens, "the tokens to be in the cache")
        for broker_id in {each["data"]["brokerId"] for each in records if each["name"] in REGISTRATIONS}:
            broker = self.known.state.brokers.get(broker_id)
            if broker is not None and not broker.fenced and not broker.in_controlled_shutdown:
                self._client.call(Beat(broker=broker_id).message(self.known), 2, BrokerHeartbeatResponse)

    def _has_cached_tokens(self) -> bool:
        """Whether a stranger is refused for the reason that the metadata has."""
        for number, reason in enumerate(self.known.refusals_of_strangers()):
            sent, version = RenewToken(token=number, user=STRANGER).sent(self.known, RENEW_VERSION)
            response = self._client.call(sent, version, EnvelopeResponse)
            refusal, _ = opened(response, version, (RenewDelegationTokenResponse.API_KEY, RENEW_VERSION))
            if codes_in(refusal.to_json(RENEW_VERSION)) != [reason]:
                return False
        return True

    def _remember(self, step: AnyStep, response: Message) -> None:
        match step, response:
            case Beat(), BrokerHeartbeatResponse(error_code=0):
                self.known.take_heartbeat(step.broker, response.should_shut_down)
            case CreateToken(), CreateDelegationTokenResponse(error_code=0):
                self.known.hmacs.append(response.hmac)

    def _read(self) -> tuple[Form, ...]:
        """Return the records that were committed since the last call."""
        end_offset, known = self._log.ends().high_watermark, self.known
        decoded: list[tuple[Message, int]] = []
        if known.next_offset >= end_offset:
            return ()
        for served in self._log.batches(known.next_offset, end_offset):
            for batch in split_batches(served.data)[0]:
                if batch.header.next_offset > end_offset or batch.header.base_offset < known.next_offset:
                    continue
                if batch.header.is_control:
                    known.take_control_batch(batch)
                    continue
                for record in iter_records(batch):
                    message, version = decode_metadata_record(record.value)
                    known.replay(message, record.offset)
                    decoded.append((message, version))
        return tuple(
            {"name": message.NAME, "version": version, "data": form_of(message, version, known)}
            for message, version in decoded
            if not isinstance(message, NoOpRecord)
        )


class Pair(NamedTuple):
    """Java's controller and ours."""

    ours: Side
    java: Side


@contextmanager
def fresh_pair(
    tools: ToolServer,
    *,
    properties: Mapping[str, str | None] = {},
    our_properties: Mapping[str, str] = {},
    release: str | None = None,
) -> Iterator[Pair]:
    """Start both controllers on new folders. Both have these ``properties``, but for those that are None.

    Ours may have others, to see that it differs. With a ``release`` their metadata.version is that of this
    release, and their voters are static. Afterwards they are killed: nothing of theirs is needed.
    """
    cluster_id = random_cluster_id()
    wanted = {**PROPERTIES, **properties}
    shared = {key: value for key, value in wanted.items() if value is not None}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="kraft-wire-judge-")))
        space = stack.enter_context(Workspace(folder / "ours"))
        ours_have = {**shared, **our_properties}
        ours = OurController(space, CONTROLLER_ID, ours_have)
        space = stack.enter_context(Workspace(folder / "java"))
        java = JvmController(space, CONTROLLER_ID, find_jars(NEWEST_KAFKA), tools, shared)
        for node in (ours, java):
            _format(node, cluster_id, release)
            node.start()
        sides = []
        for node, its_own in ((ours, ours_have), (java, shared)):
            node.wait_until_ready()
            sides.append(Side(node, cluster_id, its_own))
            stack.callback(sides[-1].close)
        yield Pair(*sides)


def _format(node: JvmController | OurController, cluster_id: str, release: str | None) -> None:
    if release is None:
        node.format(cluster_id, "--standalone")
        return
    voters = f"{CONTROLLER_ID}@{node.address}"
    node.change_properties({"controller.quorum.voters": voters, "controller.quorum.bootstrap.servers": ""})
    node.format(cluster_id, "--release-version", release)


def play(pair: Pair, script: Sequence[AnyStep]) -> Played:
    """Play a script to its end, or to the first step that differs or after which the clusters differ."""
    played = Played(len(script), [], [])
    known = pair.java.known
    for number, step in enumerate(script):
        reason = why_set_aside(step, known)
        if reason is not None:
            played.set_aside.append(reason)
            continue
        asked = Asked(step, known.fenced(), known.stopping(), pair.java.deletes_topics)
        ours, java = pair.ours.play(step), pair.java.play(step)
        played.answered.append((ours, java))
        reason = why_not_compared(step, ours.outcome, java.outcome, known)
        if reason is not None:
            return played._replace(ended=reason)
        left, right = compared(asked, ours.outcome, java.outcome)
        if left != right:
            return played._replace(difference=Difference(number, step, left, right))
        reason = why_last(step, java.outcome.records)
        if reason is not None and number + 1 < len(script):
            return played._replace(ended=reason)
    return played
