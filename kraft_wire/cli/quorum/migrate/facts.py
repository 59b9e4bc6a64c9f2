"""What is known of a quorum before a migration, and what is made of it. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

import msgspec

Target = Literal["dynamic", "kraft-wire", "java"]
"""Voters in the log (kraft.version 1), without controller.quorum.voters; or the software of controllers."""
Software = Literal["kraft-wire", "Java", "unknown"]
Kind = Literal["in the way", "not known", "note"]
State = Literal["done", "to do", "not known", "as it is"]

CLUSTER: Final = ""
"""The node of findings and steps that concern the whole cluster."""
Ranges = Mapping[str, tuple[int, int]]
"""The lowest and highest level that a node supports, by feature."""


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A metadata folder that a properties file names.

    ``is_here`` is false if this machine has no such folder; ``problem`` says why it can't be read. All else
    is unknown then. ``guards`` are the files by which kraft-wire limits this node's votes. ``no_vote_up_to``
    and ``quorum_epoch`` are -1 if there are none. ``damage`` is what fsck would find.
    """

    path: str
    is_here: bool = True
    problem: str = ""
    cluster_id: str = ""
    node_id: int = -1
    directory_id: str = ""
    pid: int | None = None
    quorum_epoch: int = -1
    no_vote_up_to: int = -1
    guards: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A node's properties file. ``can_be_edited``: each key stands on one line, so that sed can remove it."""

    path: str
    properties: Mapping[str, str]
    can_be_edited: bool = True
    folder: Folder | None = None

    @property
    def node_id(self) -> int | None:
        text = self.properties.get("node.id", self.properties.get("broker.id", "")).strip()
        return int(text) if text.isdecimal() else None


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A controller or a broker.

    ``address`` is where it is asked, "" if that isn't known. ``problem`` says why it doesn't answer.
    ``settings`` are the properties that it was started with, None if it doesn't tell them. ``features`` are
    what it says itself, otherwise what it has registered; empty if neither is known. ``file`` is its own of
    --config.
    """

    KIND: ClassVar[str]

    id: int
    address: str = ""
    problem: str = ""
    features: Ranges = {}
    settings: Mapping[str, str] | None = None
    file: File | None = None

    @property
    def name(self) -> str:
        """The node in messages to the operator, such as "controller 2"."""
        return f"{self.KIND} {self.id}"


class Controller(Node, frozen=True, kw_only=True):
    """A controller: a voter, an observer, or one that is only registered.

    ``fetches``: it leads, or has fetched a moment ago. ``lag`` is counted in records, None if it isn't known.
    ``directory_id`` is "" if the leader doesn't know it. ``apis`` are the keys of the APIs that it serves.
    ``is_registered`` is None if that isn't known. ``registered_features`` and ``protocols``, those of its
    listeners, are what it has registered; empty if that isn't known. ``advertised`` is the address that it
    has registered, if it isn't the one that the voters use now; ``advertised_problem`` says why it doesn't
    answer there.
    """

    KIND = "controller"

    is_voter: bool = True
    is_leader: bool = False
    fetches: bool = True
    lag: int | None = 0
    directory_id: str = ""
    software: Software = "unknown"
    apis: frozenset[int] = frozenset()
    is_registered: bool | None = True
    registered_features: Ranges = {}
    advertised: str = ""
    advertised_problem: str = ""
    protocols: tuple[str, ...] = ()


class Broker(Node, frozen=True, kw_only=True):
    """A registered broker."""

    KIND = "broker"

    is_fenced: bool = False
    is_from_zookeeper: bool = False


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """How many of these things the metadata has."""

    acls: int = 0
    tokens: int = 0


class Quorum(msgspec.Struct, frozen=True, kw_only=True):
    """A quorum with a leader.

    ``bootstrap`` and ``command_config`` are the options that reach it. ``kraft_version`` is 1 if its log has
    the voters. ``levels`` are the finalized levels by feature, without kraft.version. ``refusal`` is why the
    leader refuses kraft.version 1, "" if it doesn't, None if it wasn't asked. ``unreadable`` says why
    kraft-wire can't read the metadata, ``unread`` why it couldn't try; usage is None and brokers are missing
    then. ``bootstrap_problems`` has the addresses in the nodes' controller.quorum.bootstrap.servers that are
    no controller's, with the reason; "" if a controller of this cluster answers there nevertheless.
    ``strangers`` are files whose node.id no node has.
    """

    cluster_id: str
    leader_id: int
    bootstrap: str
    command_config: str = ""
    kraft_version: int = 0
    levels: Mapping[str, int] = {}
    controllers: tuple[Controller, ...] = ()
    brokers: tuple[Broker, ...] = ()
    usage: Usage | None = Usage()
    refusal: str | None = None
    unreadable: str = ""
    unread: str = ""
    bootstrap_problems: Mapping[str, str] = {}
    strangers: tuple[File, ...] = ()

    @property
    def voters(self) -> list[Controller]:
        return [controller for controller in self.controllers if controller.is_voter]

    @property
    def leader(self) -> Controller | None:
        return next((each for each in self.controllers if each.is_leader), None)


class Finding(msgspec.Struct, frozen=True):
    """Something that is in the way, that can't be known, or that is good to know.

    ``node`` has it ("controller 2", "broker 11", or ``CLUSTER``). ``do`` says what to do, ``command`` is the
    command line that does it, if there is one.
    """

    kind: Kind
    node: str
    what: str
    do: str = ""
    command: str = ""


class Step(msgspec.Struct, frozen=True):
    """What to do next, on the machine of a node (``CLUSTER``: on any). ``commands`` are lines for a shell;
    what only a human can do is a comment among them."""

    node: str
    why: str
    commands: tuple[str, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """The judgement. ``states`` says how far each node is. ``step`` is None if nothing is left to do."""

    findings: tuple[Finding, ...]
    states: Mapping[str, State]
    step: Step | None

    @property
    def is_blocked(self) -> bool:
        return any(finding.kind == "in the way" for finding in self.findings)

    @property
    def is_reached(self) -> bool:
        """Whether the target is known to be reached."""
        return self.step is None and not self.is_blocked


def in_the_way(node: str, what: str, do: str, command: str = "") -> Finding:
    return Finding("in the way", node, what, do, command)


def not_known(node: str, what: str, do: str, command: str = "") -> Finding:
    return Finding("not known", node, what, do, command)


def note(node: str, what: str, do: str = "") -> Finding:
    return Finding("note", node, what, do)
