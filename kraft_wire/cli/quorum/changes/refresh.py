"""``kraft-wire registrations refresh``: let a controller that is gone no longer veto features."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from kraft_wire.cli.errors import EXIT_OK
from kraft_wire.cli.quorum import AtWork, Unfit
from kraft_wire.cli.quorum.changes.leader_client import LeaderClient, leader_for_change
from kraft_wire.cli.quorum.changes.registrations import (
    Presence,
    has_stopped,
    leaders_answer,
    presence_at,
    registrations_of,
)
from kraft_wire.cli.quorum.confirming import INTERRUPTED, confirm, interruption_says
from kraft_wire.cli.quorum.connecting import DEFAULT_TIMEOUT_MS, settings_of
from kraft_wire.client.voter_changes import register_controller
from kraft_wire.protocol.messages.controller_registration_response import ControllerRegistrationResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.wire.address import Address


def registrations_refresh(
    *,
    id: int,
    bootstrap_controller: str,
    yes: bool = False,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Register the features of the leader for a controller that is gone. Shows what changes, and asks.

    A controller that was shut down for good stays registered with the features of its last release, and these
    keep metadata.version from rising. From metadata.version 33 on, `quorum remove` removes the registration.
    Before, this command ends its veto.

    Exit statuses: 0 refreshed, now or before; 2 wrong usage; 3 no controller answers; 4 none of them leads; 5
    the file of --command-config can't be read; 6 there is no such registration, or the controllers are of
    several clusters; 7 the controller runs; 8 not confirmed; 12 it isn't known whether the change was made;
    14 the leader refuses; 130 interrupted; 1 anything else.

    For example:

        kraft-wire registrations refresh --id 3 --bootstrap-controller c1:9093

    Parameters
    ----------
    id
        The node id of the controller that is gone.
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    yes
        Don't ask.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader, and how long to wait for the commit.
    """
    with leader_for_change(settings_of(bootstrap_controller, command_config, timeout_ms)) as leader:
        registered = registrations_of(leader)
        address = registered.get(id)
        if address is None:
            known = ", ".join(map(str, sorted(registered))) or "none"
            raise Unfit(f"controller {id} is not registered; registered are {known}")
        _refuse_if_it_runs(leader, id, address)
        features = leaders_answer(leader).features
        if leader.history().features.get(id) == features:
            print(f"Controller {id} is already registered with the leader's features. Nothing was changed.")
            return EXIT_OK
        for line in _lines(id, features):
            print(line)
        if not yes:
            confirm()
        _refresh(leader, id, address, features)
    print(f"Controller {id} is registered with these features. The change is committed.")
    return EXIT_OK


def _refuse_if_it_runs(leader: LeaderClient, node_id: int, address: Address) -> None:
    """Raise AtWork if the controller answers at its address, or doesn't stop to fetch soon."""
    presence = presence_at(leader, node_id, address)
    if presence == Presence.UNCLEAR:
        raise AtWork(
            f"something answers at {address}, the address of controller {node_id}, and doesn't say which "
            "node it is: stop it, or upgrade it instead"
        )
    if presence == Presence.RUNS or not has_stopped(leader, node_id):
        raise AtWork(
            f"controller {node_id} runs, and registers its own features: stop it, or upgrade it instead"
        )


def _lines(node_id: int, features: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    yield f"Controller {node_id} will be registered with what the leader supports:"
    for name, (lowest, highest) in sorted(features.items()):
        yield f"  supports {name} {lowest} to {highest}"


def _refresh(
    leader: LeaderClient, node_id: int, address: Address, features: Mapping[str, tuple[int, int]]
) -> None:
    listener = next(
        (point.listener for points in leader.describe().endpoints.values() for point in points[:1]),
        "CONTROLLER",
    )
    incarnation_id = Uuid.from_random(secrets.token_bytes(16))
    endpoint = Endpoint(listener, address.host, address.port)
    request = register_controller(node_id, incarnation_id, endpoint, features)
    # No API shows what features a controller has registered: only the leader's answer says that it is done.
    with interruption_says(INTERRUPTED):
        leader.change(request, ControllerRegistrationResponse, lambda _: None)
