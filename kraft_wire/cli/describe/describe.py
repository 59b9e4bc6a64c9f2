"""``kraft-wire describe``: its options."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from kraft_wire.cli.describe.reading import read_folder, read_quorum
from kraft_wire.cli.describe.screens import TOPICS, json_of, text_of
from kraft_wire.cli.errors import EXIT_OK, UsageError
from kraft_wire.cli.moments import check_moment
from kraft_wire.cli.output import print_lines, print_text
from kraft_wire.cli.quorum.connecting import DEFAULT_TIMEOUT_MS, settings_of
from kraft_wire.logs.metadata_at import MetadataThen, Moment

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
Screen = Literal["brokers", "topics", "configs", "quorum", "features", "reassignments"]


def describe(
    screen: Screen | None = None,
    /,
    *topic: str,
    bootstrap_controller: str | None = None,
    from_folder: Annotated[Path | None, Parameter("--from")] = None,
    as_of_offset: int | None = None,
    as_of_time: str | None = None,
    json: bool = False,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Show a cluster's metadata, as its log has it: now, or as it was at an offset or a time.

    The log is that of running controllers, ours or Java's, or lies in a folder. Only what the log still has
    can be shown: controllers delete the part before their oldest snapshot.

    Exit statuses: 0 shown; 2 wrong usage; 3 no controller answers; 4 none of them leads; 5 the log, or the
    file of --command-config, can't be read; 6 the log doesn't reach the moment, or there are several
    clusters; 130 interrupted; 1 anything else.

    For example:

        kraft-wire describe --bootstrap-controller c1:9093,c2:9093
        kraft-wire describe topics orders --bootstrap-controller c1:9093
        kraft-wire describe brokers --from /var/lib/kafka/metadata --as-of-time 2026-11-22T01:30:00

    Parameters
    ----------
    screen
        What to show; an overview without it.
    topic
        With topics: show every partition of these topics.
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    from_folder
        Read the log in or below this folder instead.
    as_of_offset
        Show the metadata after the record with this offset.
    as_of_time
        Show the metadata before the first record that was written after this time, such as
        2026-11-22T01:30:00; in UTC unless it names a zone, as in +01:00.
    json
        Print one JSON object.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader.
    """
    if topic and screen != TOPICS:
        raise UsageError(f"{topic[0]!r}: only `describe topics` takes names")
    time = check_moment(as_of_offset, as_of_time)
    moment = Moment(as_of_offset, None if time is None else (time - EPOCH) // timedelta(milliseconds=1))
    then = _read(bootstrap_controller, from_folder, moment, command_config, timeout_ms)
    if json:
        print_lines([json_of(then, screen, topic).decode()])
    else:
        print_text(text_of(then, screen, topic))
    return EXIT_OK


def _read(
    bootstrap_controller: str | None,
    folder: Path | None,
    moment: Moment,
    command_config: Path | None,
    timeout_ms: int,
) -> MetadataThen:
    if (bootstrap_controller is None) == (folder is None):
        raise UsageError("give one of --bootstrap-controller and --from")
    if folder is not None:
        if command_config is not None:
            raise UsageError("--command-config is for --bootstrap-controller, not for --from")
        return read_folder(folder, moment)
    return read_quorum(settings_of(bootstrap_controller or "", command_config, timeout_ms), moment)
