"""``kraft-wire quorum status``: the state of a quorum, with a leader or without, on line or from folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kraft_wire.cli.errors import EXIT_OK, UsageError, complain
from kraft_wire.cli.output import print_text
from kraft_wire.cli.quorum import EXIT_DIVERGED, EXIT_NO_LEADER, EXIT_SPLIT, NoAnswer, Unfit
from kraft_wire.cli.quorum.connecting import (
    AUTO_JOIN,
    DEFAULT_TIMEOUT_MS,
    OPTION,
    advice_without_leader,
    check_one_cluster,
    client_errors,
    no_answer,
    settings_of,
    without_leader,
)
from kraft_wire.cli.quorum.folders import evidence_of
from kraft_wire.cli.quorum.history import read_history
from kraft_wire.cli.quorum.patience import no_leader_yet, said_if_slow
from kraft_wire.cli.quorum.status.answers import registered_among, report_of_answers
from kraft_wire.cli.quorum.status.folders import report_of_folders
from kraft_wire.cli.quorum.status.leader import KnownOfLog, known_of, note_silent, report_of_leader
from kraft_wire.cli.quorum.status.report import StatusReport, history_rows
from kraft_wire.cli.quorum.status.split import note_leaders
from kraft_wire.cli.quorum.status.states import note_states
from kraft_wire.cli.quorum.status.text import text_of
from kraft_wire.client.at_once import at_once
from kraft_wire.client.errors import QuorumError, QuorumUnreachable
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.client.quorum_description import QuorumDescription
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.client.state_digests import states_of
from kraft_wire.client.survey import (
    SPLIT_AFTER_S,
    NodeAnswer,
    clusters_among,
    confirmed_leaders,
    setting_of,
    survey,
)
from kraft_wire.log.errors import LogError
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.raft.recovery.evidence import QuorumHistory
from kraft_wire.wire.address import Address


def quorum_status(
    *,
    bootstrap_controller: str | None = None,
    stale: bool = False,
    from_dir: Sequence[Path] = (),
    no_history: bool = False,
    digest: bool = False,
    json: bool = False,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Show who leads, how far each replica has come, how many voters may fail, and how the voters changed.

    Exit statuses: 0 shown; 2 wrong usage; 3 no controller answers; 4 controllers answer, and none leads (what
    each of them knows is shown then); 5 a folder or the file of --command-config can't be read; 6 the
    controllers or folders are of several clusters; 17 the cluster is split: two controllers lead, or
    committed records differ (it is shown then); 18 with --digest, the states of two nodes differ (it is shown
    then); 130 interrupted; 1 anything else. With --stale, it is not 4 but 0 as soon as one controller
    answers.

    For example:

        kraft-wire quorum status --bootstrap-controller c1:9093,c2:9093,c3:9093
        kraft-wire quorum status --bootstrap-controller c2:9093,c3:9093 --stale
        kraft-wire quorum status --bootstrap-controller c1:9093 --no-history --digest
        kraft-wire quorum status --from-dir /var/lib/kafka/metadata

    Parameters
    ----------
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    stale
        Ask each of the given controllers itself, without looking for a leader.
    from_dir
        A controller's folder, with meta.properties, to read instead. Can be given several times. Nothing is
        changed, and the controller may be running.
    no_history
        Leave out the history of the voters, for which the leader's whole log is read.
    digest
        Compare the metadata in the memory of all controllers, as it is at one offset, by a digest. Only nodes
        of kraft-wire answer. Give the address of a `kraft-wire observe` to include it.
    json
        Print one JSON object instead of text.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader, and how long to wait for one controller.
    """
    _check_options(bootstrap_controller, from_dir, stale=stale, digest=digest)
    if bootstrap_controller is None:
        return _show(_from_folders(from_dir), json)
    settings = settings_of(bootstrap_controller, command_config, timeout_ms)
    with client_errors():
        if stale:
            return _show_stale(settings, json)
        return _show_led(settings, json, with_history=not no_history, with_states=digest)


def _check_options(
    bootstrap_controller: str | None, from_dir: Sequence[Path], *, stale: bool, digest: bool
) -> None:
    if bool(from_dir) == (bootstrap_controller is not None):
        raise UsageError(f"give either {OPTION} or --from-dir")
    if digest and stale:
        raise UsageError("--digest needs the leader, and --stale doesn't look for it: leave one of them out")
    if bootstrap_controller is None and (digest or stale):
        raise UsageError(f"{'--digest' if digest else '--stale'} goes with {OPTION}")


def _show_led(settings: QuorumSettings, json: bool, *, with_history: bool, with_states: bool) -> int:
    try:
        with QuorumClient(settings, waiting=no_leader_yet(settings)) as quorum:
            report = _from_leader(settings, quorum, with_history=with_history, with_states=with_states)
    except QuorumUnreachable as error:
        return _show_leaderless(settings, error, json)
    return _show(report, json)


def _show(report: StatusReport, json: bool) -> int:
    """Print a report, and return the exit status."""
    print_text([msgspec.json.encode(report).decode()] if json else text_of(report))
    if report.split:
        complain(report.split)
        return EXIT_SPLIT
    if report.states_differ:
        complain(report.states_differ)
        return EXIT_DIVERGED
    return EXIT_OK


def _from_folders(folders: Sequence[Path]) -> StatusReport:
    found = [evidence_of(folder) for folder in folders]
    clusters = sorted({folder.cluster_id for folder in found})
    if len(clusters) > 1:
        raise Unfit(f"the folders are of several clusters: {', '.join(clusters)}; give those of one")
    return report_of_folders(found)


def _show_stale(settings: QuorumSettings, json: bool) -> int:
    answers = survey(settings)
    if all(answer.problem for answer in answers):
        raise no_answer(answers)
    return _show(_from_answers(settings, answers), json)


def _from_answers(settings: QuorumSettings, answers: Sequence[NodeAnswer]) -> StatusReport:
    check_one_cluster(answers)
    report = report_of_answers(answers, _auto_join(settings, registered_among(answers)))
    note_leaders(report, _leaders(settings, answers))
    return report


def _leaders(settings: QuorumSettings, answers: Sequence[NodeAnswer]) -> list[NodeAnswer]:
    with said_if_slow(f"several controllers say that they lead: asking them again for {SPLIT_AFTER_S:g} s"):
        return confirmed_leaders(settings, answers)


def _show_leaderless(settings: QuorumSettings, error: QuorumUnreachable, json: bool) -> int:
    answers = _ask_all_known(settings)
    problem = without_leader(answers, error, advice=advice_without_leader(answers))
    if isinstance(problem, NoAnswer):
        raise problem
    if _show(_from_answers(settings, answers), json) == EXIT_SPLIT:
        return EXIT_SPLIT
    complain(str(problem))
    return EXIT_NO_LEADER


def _ask_all_known(settings: QuorumSettings) -> list[NodeAnswer]:
    """Ask the given controllers, and those that these have as registered."""
    given = survey(settings)
    registered = registered_among(given).values()
    others = survey(settings, [address for address in registered if address not in settings.bootstrap])
    clusters = clusters_among(given)
    return [*given, *(answer for answer in others if answer.cluster_id in (None, *clusters))]


def _from_leader(
    settings: QuorumSettings, quorum: QuorumClient, *, with_history: bool, with_states: bool
) -> StatusReport:
    cluster_id = quorum.cluster_id()
    described = quorum.describe_quorum()
    (leader,) = survey(settings, [quorum.answered_by])
    given = survey(settings, [address for address in settings.bootstrap if address != leader.address])
    check_one_cluster([leader, *given])
    history = QuorumHistory()
    notes = [f"the leader, {leader.address}, can't be asked: {leader.problem}"] if leader.problem else []
    is_whole = with_history
    if with_history:
        try:
            with said_if_slow("reading the leader's log for the history; --no-history leaves it out"):
                read_history(quorum, history)
        except (QuorumError, LogError, ProtocolError) as error:
            is_whole = False
            notes.append(f"the history of the voters is incomplete: {error}")
    known = known_of(leader, history if is_whole else None)
    addresses = _addresses(described, known)
    ids = {address: id for id, address in addresses.items()}
    report = report_of_leader(cluster_id, described, known, _auto_join(settings, addresses))
    report.history = history_rows(history.changes)
    report.notes += notes
    asked = {leader.address, *settings.bootstrap}
    others = survey(settings, [address for address in ids if address not in asked])
    note_silent(report, described, [*given, *others], ids)
    of_cluster = [answer for answer in others if answer.cluster_id in (None, cluster_id)]
    note_leaders(report, _leaders(settings, [leader, *given, *of_cluster]))
    if with_states:
        with said_if_slow("comparing the states of all controllers"):
            _compare_states(settings, quorum.describe_quorum(), cluster_id, report, ids)
    return report


def _addresses(described: QuorumDescription, known: KnownOfLog) -> dict[int, Address]:
    """Return the addresses of the controllers, by id, as far as they are known."""
    points = {id: points[0] for id, points in described.endpoints.items() if points}
    return {**known.addresses, **{id: Address(point.host, point.port) for id, point in points.items()}}


def _compare_states(
    settings: QuorumSettings,
    described: QuorumDescription,
    cluster_id: str,
    report: StatusReport,
    ids: dict[Address, int],
) -> None:
    asked = list(dict.fromkeys([*ids, *settings.bootstrap]))
    leader = described.leader
    log_end_offset = described.high_watermark if leader is None else leader.log_end_offset
    note_states(report, states_of(settings, asked, cluster_id, log_end_offset), ids)


def _auto_join(settings: QuorumSettings, addresses: Mapping[int, Address]) -> dict[int, bool]:
    """Ask these controllers for their own setting."""
    values = at_once(lambda node: setting_of(settings, node[1], node[0], AUTO_JOIN), list(addresses.items()))
    return {id: value == "true" for id, value in zip(addresses, values, strict=True) if value is not None}
