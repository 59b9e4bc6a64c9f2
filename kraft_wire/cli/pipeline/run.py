"""``kraft-wire pipeline run``: keep the tables of many clusters up to date."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from cyclopts import Parameter

from kraft_wire.cli.errors import EXIT_INTERRUPTED, EXIT_OK, CommandError, UsageError, stop_writing
from kraft_wire.cli.pipeline import check_extra
from kraft_wire.cli.stop_signals import StopSignals
from kraft_wire.client.addresses import BOOTSTRAP
from kraft_wire.lake.formats import TableFormat, open_lake
from kraft_wire.lake.protocol import one_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.python.unix.domain.socket.enabled": "false",
    "spark.sql.python.unix.domain.socket.enabled": "false",
}
"""Over a Unix socket, each Python worker that Spark ends prints a stack about a broken pipe. Spark ends them
when it stops, and after a minute without work."""
CONNECT_PORT: Final = 15002
CONNECT_TIMEOUT_S: Final = 10
DEFAULT_MASTER: Final = "local[*]"
OURS: Final = {"path", "paths", BOOTSTRAP, "table", "columns", "endingoffsets"}
"""The options of the data source that the pipeline sets itself."""
_UNITS: Final = "week|day|hour|minute|millisecond|microsecond"
_INTERVAL: Final = re.compile(
    r"\s*(interval\s)?(\s*\+?\s*"
    rf"([0-9]+\s+({_UNITS})s?|([0-9]+\.?[0-9]{{0,9}}|\.[0-9]{{1,9}})\s+seconds?)(\s+|$))+",
    re.IGNORECASE,
)
"""The intervals that Spark takes for a trigger: its day-time intervals (IntervalUtils), not below 0."""


def pipeline_run(
    *,
    source: Annotated[Sequence[str], Parameter(negative=())] = (),
    bootstrap_controllers: str | None = None,
    target: Path,
    once: bool = False,
    trigger_interval: str = "30 seconds",
    format: TableFormat = "parquet",
    master: Annotated[str | None, Parameter(show_default=DEFAULT_MASTER)] = None,
    remote: str | None = None,
    option: Annotated[Sequence[str], Parameter(negative=())] = (),
    setting: Annotated[Sequence[str], Parameter(negative=())] = (),
) -> int:
    """Keep the tables of many clusters up to date below a folder, as Parquet by cluster.

    Each record is stored exactly once, even if the command is killed: started again, it continues. Read a
    table with `spark.read.parquet("TARGET/leadership")`.

    For example:

        kraft-wire pipeline run --source /var/lib/kafka --target lake --once
        kraft-wire pipeline run --bootstrap-controllers c1:9093,c2:9093 --target lake

    Parameters
    ----------
    source
        A folder with metadata logs in it or below it, or a glob. Can be given several times.
    bootstrap_controllers
        Read from a live quorum instead: HOST:PORT,... of its controllers.
    target
        The folder to write, which drivers and workers share.
    once
        End when everything that is there now has been read.
    trigger_interval
        The time between two looks for new records, such as "10 seconds".
    format
        With delta, the tables are Delta tables as well: the same files, with a log of the valid ones. Needs
        kraft-wire[delta].
    master
        Where Spark runs: local[*], spark://HOST:PORT, or yarn.
    remote
        Use a Spark Connect server instead: sc://HOST:PORT. Its Python needs kraft-wire[spark], and the server
        must see the target by the same path. Needs kraft-wire[connect].
    option
        NAME=VALUE of the data source, such as tail=committed. Can be given several times.
    setting
        NAME=VALUE of Spark, such as spark.driver.memory=4g. Can be given several times.
    """
    if not _INTERVAL.fullmatch(trigger_interval):
        raise UsageError(f"--trigger-interval {trigger_interval!r} is not an interval, such as '10 seconds'")
    place = _Place(master, remote, _pairs("setting", setting))
    job = _Job(_options(source, bootstrap_controllers, option), target, format)
    _check_all(place, job, is_here=remote is None and bootstrap_controllers is None)
    source_text = bootstrap_controllers or ", ".join(source)
    _say_on_stderr(f"Spark is starting on {place.text}; then it reads {source_text} into {target}")
    return _run(place, job, None if once else trigger_interval)


class _Place(NamedTuple):
    """The Spark that does the work."""

    master: str | None
    remote: str | None
    settings: Mapping[str, str]

    @property
    def text(self) -> str:
        return self.remote or self.master or DEFAULT_MASTER


class _Job(NamedTuple):
    """The logs to read, and the tables to write."""

    options: dict[str, str]
    target: Path
    format: TableFormat


def _check_all(place: _Place, job: _Job, *, is_here: bool) -> None:
    """Raise CommandError for what would fail only after Spark has started."""
    if place.master is not None and place.remote is not None:
        raise UsageError("give either --master or --remote")
    check_extra()
    if place.remote is not None:
        check_extra("connect", "grpc", "grpc_status")
        _check_server(place.remote)
    if job.format == "delta":
        check_extra("delta", "deltalake")
    _check(job.options, job.target, job.format, is_here=is_here)


def _run(place: _Place, job: _Job, interval: str | None) -> int:
    """Run batches until a signal, or without an interval until all is read; return the exit status."""
    from py4j.protocol import Py4JNetworkError

    from kraft_wire.spark.pipeline.run import run

    spark = _session(place.master, place.remote, place.settings)
    is_complete = False
    with StopSignals("kraft-wire: stopping after this batch; a second signal stops at once") as signals:

        def should_stop() -> bool:
            return signals.came is not None

        try:
            try:
                is_complete = run(spark, job.options, job.target, interval, _say, job.format, should_stop)
            finally:
                spark.stop()
        except (Py4JNetworkError, ConnectionError):
            if signals.came is None:
                raise  # else Java got the same signal, and has ended already
    if signals.came == SIGINT:
        return EXIT_INTERRUPTED
    if signals.came is not None and interval is None and not is_complete:
        return 128 + signals.came
    if is_complete:
        _say(_summary(job.target, job.format))
    return EXIT_OK


def _summary(target: Path, format: TableFormat) -> str:
    with open_lake(target.absolute(), format) as lake:
        ends = lake.ends.values()
        unit = "cluster" if len(ends) == 1 else "clusters"
        return f"done: {sum(ends) + len(ends):,} offsets of {len(ends):,} {unit}, tables in {target}"


def _session(master: str | None, remote: str | None, settings: Mapping[str, str]) -> SparkSession:
    """Raises CommandError."""
    from pyspark.errors import PySparkException

    from kraft_wire.spark import session

    quiet = QUIET if remote is None else {}
    try:
        return session(master or DEFAULT_MASTER, {**quiet, **settings}, remote=remote)
    except PySparkException as error:
        raise CommandError(f"Spark failed to start: {error}") from None


def _options(source: Sequence[str], controllers: str | None, given: Sequence[str]) -> dict[str, str]:
    """Return the options of the data source. Raises UsageError."""
    options = dict(_pairs("option", given))
    ours = sorted(name for name in options if name.lower() in OURS)
    if ours:
        raise UsageError(f"--option {ours[0]}: the pipeline sets it itself")
    if bool(source) == (controllers is not None):
        raise UsageError("give either --source or --bootstrap-controllers")
    if controllers is not None:
        return {**options, BOOTSTRAP: controllers}
    from kraft_wire.logs.folders import whole_pattern  # a server has another working directory

    return {**options, "paths": msgspec.json.encode([whole_pattern(path) for path in source]).decode()}


def _check(options: Mapping[str, str], target: Path, format: TableFormat, *, is_here: bool) -> None:
    """Report what is wrong before Spark is started, which takes seconds. Raises UsageError, LogError."""
    from kraft_wire.logs.folders import find_folders
    from kraft_wire.spark.options import BadOption, parse_options

    try:
        parsed = parse_options({name.lower(): text for name, text in options.items()})
    except BadOption as error:
        reason = f"--option {error}"
        raise UsageError(reason.replace(f"--option {BOOTSTRAP}:", "--bootstrap-controllers:")) from None
    if is_here:
        find_folders(parsed.paths)
    with one_command(target.absolute()), open_lake(target.absolute(), format):
        pass  # raises if another pipeline writes there


def _say(line: str) -> None:
    """Print a line. With ``| head`` the tables are still written to the end."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        stop_writing()


def _say_on_stderr(line: str) -> None:
    with suppress(BrokenPipeError):
        print(line, file=sys.stderr, flush=True)


def _check_server(remote: str) -> None:
    """Connect to the server once: Spark itself would try for minutes, silently. Raises CommandError."""
    try:
        address = urlsplit(remote)
        host, port = address.hostname, address.port or CONNECT_PORT
    except ValueError as error:
        raise UsageError(f"--remote {remote}: {error}") from None
    if address.scheme != "sc" or host is None:
        raise UsageError(f"--remote {remote}: give sc://HOST:PORT")
    try:
        socket.create_connection((host, port), CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise CommandError(
            f"--remote {remote}: {error.strerror or error}; is a server running there?"
        ) from None


def _pairs(name: str, given: Sequence[str]) -> Mapping[str, str]:
    pairs = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError(f"--{name} {text}: give NAME=VALUE")
        pairs[key] = value
    return pairs
