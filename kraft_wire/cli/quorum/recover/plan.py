"""``kraft-wire quorum recover plan``: decide which survivor goes on, and say what is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kraft_wire.cli.errors import EXIT_OK, UsageError
from kraft_wire.cli.output import print_text
from kraft_wire.cli.quorum import Unfit
from kraft_wire.cli.quorum.recover.files import read_collection, write_new
from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.raft.recovery.evidence import KnownVoter, url_of
from kraft_wire.raft.recovery.moving import NewAddress
from kraft_wire.raft.recovery.plan import Plan, RecoveryError, Survivor
from kraft_wire.raft.recovery.planning import make_plan
from kraft_wire.server.config.endpoints import BadAddress, parse_host_port, parse_voters


def recover_plan(
    *files: Path,
    output: Path,
    keep: Sequence[int] = (),
    endpoints: str | None = None,
    without: Sequence[int] = (),
    voters: str | None = None,
) -> int:
    """Decide how the quorum goes on, say what may be lost, and write a plan. Changes no folder.

    The survivor with the newest log becomes the only voter; the others are formatted again and added. If a
    majority of the voters is left and has moved to other addresses, --endpoints keeps all voters and changes
    their addresses. A controller's folder that is damaged has to be repaired first, and collected again. A
    broker's folder tells what is lost, and is never kept.

    Exit statuses: 0 written; 2 wrong usage; 5 a file can't be read; 6 the files don't fit together, there is
    nothing to recover, or a folder has to be repaired; 130 interrupted; 1 anything else.

    For example:

        kraft-wire quorum recover plan node1.json node3.json --output plan.json
        kraft-wire quorum recover plan all.json --endpoints 1@new1:9093,2@new2:9093 --output plan.json

    Parameters
    ----------
    files
        The files of `recover collect`.
    output
        The file to write. It must not exist.
    keep
        Go on with the survivor of this node id instead of the one with the newest log. Can be given several
        times, for survivors with equal logs.
    endpoints
        New addresses of voters: ID@HOST:PORT, separated by commas; ID@LISTENER://HOST:PORT for a voter with
        several listeners.
    without
        Go on without the damaged folder of this node id, which can't be repaired. Can be given several times.
        What only this folder has is lost.
    voters
        The value that controller.quorum.voters had: ID@HOST:PORT, separated by commas. Only a static quorum
        needs it, if its log doesn't have all these addresses; `recover apply` asks them for a leader.
    """
    if not files:
        raise UsageError("name one file or more of `kraft-wire quorum recover collect`")
    addresses = [] if endpoints is None else parse_new_addresses(endpoints)
    static = {} if voters is None else parse_static_voters(voters)
    plan = _planned(files, keep=keep, addresses=addresses, without=without, static_voters=static)
    write_new(output, plan)
    print_text([*plan_lines(plan), f"Written: {output}, hash {plan.hash[:12]}"])
    return EXIT_OK


def _planned(
    files: Sequence[Path],
    *,
    keep: Sequence[int],
    addresses: Sequence[NewAddress],
    without: Sequence[int],
    static_voters: Mapping[int, Endpoint],
) -> Plan:
    """Return the plan for what these files hold. Raises Unreadable, Unfit."""
    read = [read_collection(file) for file in files]
    found = [folder for collection, _ in read for folder in collection.folders]
    hashes = sorted(digest for _, digest in read)
    try:
        return make_plan(
            found,
            hashes,
            time.time_ns() // 1_000_000,
            keep=keep,
            addresses=addresses,
            without=without,
            static_voters=static_voters,
        )
    except RecoveryError as error:
        raise Unfit(str(error)) from None


def parse_new_addresses(text: str) -> list[NewAddress]:
    """Parse ``id@host:port`` or ``id@LISTENER://host:port``, separated by commas. Raises UsageError."""
    found: dict[int, NewAddress] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        id_text, at, rest = entry.partition("@")
        listener, mark, address = rest.rpartition("://")
        if not at or not (id_text.isascii() and id_text.isdigit()):
            raise UsageError(f"--endpoints: {entry!r} is not ID@HOST:PORT")
        if address.startswith("[") != ("]:" in address):
            raise UsageError(f"--endpoints: {address!r} has only one of the brackets of [IPv6]:PORT")
        try:
            host, port = parse_host_port(address)
        except BadAddress as error:
            raise UsageError(f"--endpoints: {error}") from None
        if int(id_text) in found:
            raise UsageError(f"--endpoints: node {int(id_text)} is given twice")
        found[int(id_text)] = NewAddress(int(id_text), host, port, listener.upper() if mark else None)
    if not found:
        raise UsageError("--endpoints names no voter; give ID@HOST:PORT, separated by commas")
    return list(found.values())


def parse_static_voters(text: str) -> dict[int, Endpoint]:
    """Parse ``id@host:port``, separated by commas, as in controller.quorum.voters. Raises UsageError."""
    read = parse_voters(filter(None, (part.strip() for part in text.split(","))))
    if read.problems:
        raise UsageError(f"--voters: {read.problems[0]}")
    if not read.values:
        raise UsageError("--voters names no voter; give ID@HOST:PORT, separated by commas")
    return {voter.id: Endpoint("", voter.host, voter.port) for voter in read.values}


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield the plan for people."""
    yield f"Cluster {plan.cluster_id}: {_what(plan)}."
    yield ""
    yield "Folders, the newest log first:"
    for survivor in plan.survivors:
        yield f"  {_survivor_line(survivor)}"
    yield from _newer_lines(plan)
    if plan.without:
        nodes = ", ".join(map(str, plan.without))
        yield f"Left out of account, by --without: node {nodes}. What only that folder has is lost."
    yield ""
    if plan.targets:
        yield f"Voters so far: {_voters(plan.old_voters)}"
        yield f"Voters then:   {_voters(plan.voters)}"
        yield (
            f"Written at offsets {plan.base_offset} to {plan.end_offset - 1} in epoch {plan.epoch}: the new "
            "voters come last."
        )
        yield ""
    yield from _loss_lines(plan)
    yield ""
    yield "Steps:"
    for number, step in enumerate(plan.steps, start=1):
        yield f"  {number}. {step}"


def _survivor_line(survivor: Survivor) -> str:
    role = _role(survivor)
    cut = f", cut: it had records below {survivor.lost_below} once" if survivor.is_cut else ""
    problem = f": can't be used, {survivor.problem}" if survivor.problem else ""
    return (
        f"node {survivor.node_id} ({role}), last epoch {survivor.last_epoch}, log end "
        f"{survivor.log_end_offset}{cut}, {survivor.folder}{problem}"
    )


def _newer_lines(plan: Plan) -> Iterator[str]:
    newer = [survivor for survivor in plan.survivors if survivor.newer]
    for survivor in newer:
        yield f"In {survivor.folder}, {survivor.newer}. Only the node's id was read from such records."
    if newer:
        yield "Start the controllers with a release that knows them: another one doesn't lead."


def _role(survivor: Survivor) -> str:
    if survivor.role == "broker":
        return "broker"
    role = "voter" if survivor.is_voter else "no voter"
    return f"{role}, broker too" if survivor.role == "broker,controller" else role


def _what(plan: Plan) -> str:
    if plan.kind == "static":
        return f"its voters are static, and {_what_of_static(plan)}"
    if plan.kind == "endpoints":
        return "a majority is left, and voters get other addresses"
    return "the majority is lost"


def _what_of_static(plan: Plan) -> str:
    return "a majority is left at other addresses" if plan.is_majority_left else "the majority is lost"


def _voters(voters: Sequence[KnownVoter]) -> str:
    shown = (f"{voter.id} at {','.join(map(url_of, voter.endpoints)) or 'unknown'}" for voter in voters)
    return "; ".join(shown)


def _having(plan: Plan, offset: int) -> str:
    """Name the folders whose logs go beyond this offset, in an epoch that the kept log doesn't outdate."""
    return " and ".join(
        f"{'broker' if survivor.role == 'broker' else 'node'} {survivor.node_id}"
        for survivor in plan.survivors
        if survivor.last_epoch >= plan.last_epoch and survivor.log_end_offset > offset
    )


def _loss_lines(plan: Plan) -> Iterator[str]:
    loss = plan.loss
    if plan.is_majority_left:
        yield "Nothing is lost: a majority of the voters is left."
        return
    if loss.seen is not None:
        first, end = loss.seen
        having = _having(plan, first)
        yield f"Lost: offsets {first} to {end - 1}, which {having} has; they may have been committed."
    if loss.lost is None and loss.kept is None:
        yield f"The kept log is known to be committed up to its end, offset {loss.unknown_from}."
    if loss.lost is not None:
        first, end = loss.lost
        having = _having(plan, first)
        though = f", though {having} has them" if having else ""
        yield f"Lost: offsets {first} to {end - 1} were committed, and the kept log lacks them{though}."
    if loss.cut is not None:
        first, end = loss.cut
        yield (
            f"Lost: offsets {first} to {end - 1}, which a log had until damage took them; they may have been "
            "committed."
        )
    if loss.kept is not None:
        yield (
            f"Kept: offsets {loss.kept[0]} to {loss.kept[1] - 1} may never have been acknowledged; `apply` "
            "commits them."
        )
    replaced = ""
    if loss.replaced_from < loss.unknown_from:
        replaced = f", and from offset {loss.replaced_from} on in an epoch after {plan.last_epoch}"
    yield (
        f"Not known: what the lost voters acknowledged from offset {loss.unknown_from} on{replaced}. "
        "It is lost."
    )
