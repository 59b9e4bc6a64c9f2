"""``kraft-wire pipeline run``: the tables of many clusters, kept up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from kraft_wire.cli.errors import EXIT_OK, CommandError
from kraft_wire.cli.pipeline_extra import check_extra


def pipeline_run(
    *,
    source: Annotated[Sequence[str], Parameter(negative=())] = (),
    bootstrap_controllers: str | None = None,
    target: Path,
    once: bool = False,
    trigger_interval: str = "30 seconds",
    format: Literal["parquet", "delta"] = "parquet",
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
    options = dict(_pairs("option", option))
    if bool(source) == (bootstrap_controllers is not None):
        raise CommandError("give either --source or --bootstrap-controllers")
    if bootstrap_controllers is not None:
        options["bootstrap.controllers"] = bootstrap_controllers
    else:
        options["paths"] = msgspec.json.encode([_whole(path) for path in source]).decode()
    settings = _pairs("setting", setting)
    if remote is None:
        settings = {"spark.ui.showConsoleProgress": "false", **settings}
    if master is not None and remote is not None:
        raise CommandError("give either --master or --remote")
    check_extra()
    if remote is not None:
        check_extra("connect", "grpc", "grpc_status")
    if format == "delta":
        check_extra("delta", "deltalake")
    from kraft_wire.spark.pipeline.run import run
    from kraft_wire.spark.session import session

    spark = session(master or "local[*]", settings, remote=remote)
    try:
        run(spark, options, target, None if once else trigger_interval, _say, format)
    finally:
        spark.stop()
    return EXIT_OK


def _whole(path: str) -> str:
    """A server isn't where we are."""
    return str(Path(path).expanduser().absolute())


def _say(line: str) -> None:
    print(line, flush=True)


def _pairs(name: str, given: Sequence[str]) -> Mapping[str, str]:
    pairs = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CommandError(f"--{name} {text}: give NAME=VALUE")
        pairs[key] = value
    return pairs
