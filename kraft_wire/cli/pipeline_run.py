"""``kraft-wire pipeline run``: the tables of many clusters, kept up to date."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import msgspec
from cyclopts import Parameter

from kraft_wire.cli.errors import EXIT_INTERRUPTED, EXIT_OK, CommandError, stop_writing
from kraft_wire.cli.pipeline_extra import check_extra
from kraft_wire.cli.stop_signals import StopSignals
from kraft_wire.client.addresses import BOOTSTRAP
from kraft_wire.spark.pipeline.formats import TableFormat, open_lake
from kraft_wire.spark.pipeline.lake import one_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET: Final = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
CONNECT_PORT: Final = 15002
CONNECT_TIMEOUT_S: Final = 10
OURS: Final = {"path", "paths", BOOTSTRAP, "table", "columns", "endingoffsets"}


def pipeline_run(
    *,
    source: Annotated[Sequence[str], Parameter(negative=())] = (),
    bootstrap_controllers: str | None = None,
    target: Path,
    once: bool = False,
    trigger_interval: str = "30 seconds",
    format: TableFormat = "parquet",
    master: str | None = None,
    remote: str | None = None,
    option: Annotated[Sequence[str], Parameter(negative=())] = (),
    setting: Annotated[Sequence[str], Parameter(negative=())] = (),
) -> int:
    """Keep the tables of many clusters up to date below a folder, as Parquet by cluster.

    Each record gets in exactly once, whenever the command is killed: started again, it goes on. Read a table
    with `spark.read.parquet("TARGET/leadership")`.

    Parameters
    ----------
    source
        A folder with metadata logs in or below it, or a glob. May be given again and again.
    bootstrap_controllers
        Instead: HOST:PORT,... of a live quorum's controllers.
    target
        The folder to write, which drivers and workers share.
    once
        End when everything that is there now has been read.
    trigger_interval
        How often to look for more, such as "10 seconds".
    format
        With delta the tables are Delta tables as well: the same files, with a log that says which of them
        count. Needs kraft-wire[delta].
    master
        Where Spark runs: local[*] by default, spark://HOST:PORT, or yarn.
    remote
        Instead: sc://HOST:PORT of a Spark Connect server, whose Python has kraft-wire[spark] and which sees
        the target by the same path. Needs kraft-wire[connect].
    option
        NAME=VALUE of the data source, such as tail=committed. May be given again and again.
    setting
        NAME=VALUE of Spark, such as spark.driver.memory=4g. May be given again and again.
    """
    options = _options(source, bootstrap_controllers, option)
    settings = _pairs("setting", setting)
    if master is not None and remote is not None:
        raise CommandError("give either --master or --remote")
    check_extra()
    if remote is not None:
        check_extra("connect", "grpc", "grpc_status")
        _check_server(remote)
    if format == "delta":
        check_extra("delta", "deltalake")
    _check(options, target, format, is_here=remote is None and bootstrap_controllers is None)
    from py4j.protocol import Py4JNetworkError

    from kraft_wire.spark.pipeline.run import run

    spark = _session(master, remote, settings)
    is_complete = False
    with StopSignals("kraft-wire: stopping after this batch; once more stops at once") as signals:
        interval = None if once else trigger_interval
        try:
            try:
                is_complete = run(
                    spark, options, target, interval, _say, format, lambda: signals.came is not None
                )
            finally:
                spark.stop()
        except (Py4JNetworkError, ConnectionError):
            if signals.came is None:
                raise  # else Java has got the same signal, and is gone already
    if signals.came == SIGINT:
        return EXIT_INTERRUPTED
    if signals.came is not None and once and not is_complete:
        return 128 + signals.came
    return EXIT_OK


def _session(master: str | None, remote: str | None, settings: Mapping[str, str]) -> SparkSession:
    """Raises CommandError."""
    from pyspark.errors import PySparkException

    from kraft_wire.spark.session import session

    quiet = QUIET if remote is None else {}
    try:
        return session(master or "local[*]", {**quiet, **settings}, remote=remote)
    except PySparkException as error:
        raise CommandError(f"Spark doesn't start: {error}") from None


def _options(source: Sequence[str], controllers: str | None, given: Sequence[str]) -> dict[str, str]:
    """Those of the data source."""
    options = dict(_pairs("option", given))
    ours = sorted(name for name in options if name.lower() in OURS)
    if ours:
        raise CommandError(f"--option {ours[0]}: the pipeline itself says that")
    if bool(source) == (controllers is not None):
        raise CommandError("give either --source or --bootstrap-controllers")
    if controllers is not None:
        return {**options, BOOTSTRAP: controllers}
    from kraft_wire.spark.log_folders import whole_pattern  # a server isn't where we are

    return {**options, "paths": msgspec.json.encode([whole_pattern(path) for path in source]).decode()}


def _check(options: Mapping[str, str], target: Path, format: TableFormat, *, is_here: bool) -> None:
    """What is wrong is told before Spark is started, which takes seconds. Raises CommandError, LogError."""
    from kraft_wire.spark.log_folders import find_folders
    from kraft_wire.spark.options import BadOption, parse_options

    try:
        parsed = parse_options({name.lower(): text for name, text in options.items()})
    except BadOption as error:
        reason = f"--option {error}"
        raise CommandError(reason.replace(f"--option {BOOTSTRAP}:", "--bootstrap-controllers:")) from None
    if is_here:
        find_folders(parsed.paths)
    with one_command(target.absolute()), open_lake(target.absolute(), format):
        pass  # nobody else writes there


def _say(line: str) -> None:
    """Nobody need listen: with ``| head`` the tables are kept all the same."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        stop_writing()


def _check_server(remote: str) -> None:
    """Spark would go on trying for minutes, in silence. Raises CommandError."""
    try:
        address = urlsplit(remote)
        host, port = address.hostname, address.port or CONNECT_PORT
    except ValueError as error:
        raise CommandError(f"--remote {remote}: {error}") from None
    if address.scheme != "sc" or host is None:
        raise CommandError(f"--remote {remote}: give sc://HOST:PORT")
    try:
        socket.create_connection((host, port), CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise CommandError(
            f"--remote {remote}: {error.strerror or error}; does a server run there?"
        ) from None


def _pairs(name: str, given: Sequence[str]) -> Mapping[str, str]:
    pairs = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CommandError(f"--{name} {text}: give NAME=VALUE")
        pairs[key] = value
    return pairs
