"""``kraft-wire quorum migrate --check``: what is in the way of a migration, and the next command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kraft_wire.cli.errors import EXIT_OK, UsageError
from kraft_wire.cli.output import print_text
from kraft_wire.cli.quorum import EXIT_IN_THE_WAY
from kraft_wire.cli.quorum.connecting import (
    DEFAULT_TIMEOUT_MS,
    OPTION,
    check_given,
    led_quorum,
    settings_of,
)
from kraft_wire.cli.quorum.migrate import to_dynamic, to_java, to_kraft_wire
from kraft_wire.cli.quorum.migrate.commands import command_line
from kraft_wire.cli.quorum.migrate.facts import Quorum, Target, Verdict
from kraft_wire.cli.quorum.migrate.files import read_files
from kraft_wire.cli.quorum.migrate.gather import Options, gather
from kraft_wire.cli.quorum.migrate.report import report_of, text_of
from kraft_wire.metadata.errors import FeatureError
from kraft_wire.metadata.features.metadata_version import parse_release_version


def quorum_migrate(
    *,
    to: Target,
    bootstrap_controller: str,
    check: bool = False,
    config: Sequence[Path] = (),
    kafka_release: str | None = None,
    json: bool = False,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Check what is in the way of a migration, node by node, and print the next command. Changes nothing.

    Run it again after each step: it sees from the quorum how far the migration is.

    Exit statuses: 0 nothing is in the way (or nothing is left to do); 2 wrong usage; 3 no controller answers;
    4 none of them leads; 5 a properties file can't be read; 6 the controllers are of several clusters; 15
    something is in the way; 130 interrupted; 1 anything else.

    For example:

        kraft-wire quorum migrate --check --to dynamic --bootstrap-controller c1:9093
        kraft-wire quorum migrate --check --to java --bootstrap-controller c1:9093 --config c1.properties

    Parameters
    ----------
    to
        What is wanted: `dynamic` voters, in the log instead of in controller.quorum.voters; or `kraft-wire`
        or `java` on all controllers, each on its own folder.
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    check
        Must be given: this command only checks. The commands that it prints make the moves.
    config
        A node's properties file, if it is on this machine. Its folder is checked, too. Can be given several
        times.
    kafka_release
        With --to java: the release of Kafka that the controllers will run, such as 4.3.
    json
        Print one JSON object instead of text.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader, and how long to wait for one node.
    """
    if not check:
        raise UsageError(
            "quorum migrate only checks, and changes nothing: give --check. The commands that it prints make "
            "the moves"
        )
    _check_release(to, kafka_release)
    settings = settings_of(bootstrap_controller, command_config, timeout_ms)
    options = Options(to, bootstrap_controller, str(command_config or ""), read_files(config))
    with led_quorum(settings) as client:
        check_given(settings)
        quorum = gather(settings, client, options)
    verdict = _judge(quorum, to, kafka_release)
    report = report_of(quorum, to, verdict, _again(options, kafka_release))
    print_text([msgspec.json.encode(report).decode()] if json else text_of(report))
    return EXIT_IN_THE_WAY if verdict.is_blocked else EXIT_OK


def _check_release(to: Target, release: str | None) -> None:
    if release is None:
        return
    if to != "java":
        raise UsageError("--kafka-release goes with --to java")
    try:
        parse_release_version(release)
    except FeatureError as error:
        raise UsageError(f"--kafka-release: {error}") from None


def _judge(quorum: Quorum, to: Target, release: str | None) -> Verdict:
    if to == "dynamic":
        return to_dynamic.judge(quorum)
    return to_kraft_wire.judge(quorum) if to == "kraft-wire" else to_java.judge(quorum, release)


def _again(options: Options, release: str | None) -> str:
    """Return the line of this command."""
    words = ["kraft-wire", "quorum", "migrate", "--check", "--to", options.target]
    words += [OPTION, options.bootstrap]
    if options.command_config:
        words += ["--command-config", options.command_config]
    if release is not None:
        words += ["--kafka-release", release]
    for file in options.files:
        words += ["--config", file.path]
    return command_line(*words)
