"""The commands and their options. A command's module is imported when it runs, or its help is shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from kraft_wire.cli.errors import EXIT_FAILED, EXIT_OK

COMMANDS = "kraft_wire.cli"
HELP_FLAGS = {"--help", "-h"}
GROUPS = {"storage", "codec", "pipeline"}
"""Commands that alone only show their help, as no command at all does."""


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    from kraft_wire.protocol.tier import tier

    try:
        return f"kraft-wire {version('kraft-wire')} ({tier()} codec)"
    except PackageNotFoundError:
        return f"kraft-wire, run from its sources without being installed ({tier()} codec)"


def _app(name: str, help: str) -> App:
    return App(
        name,
        help=help,
        version=_version,
        default_parameter=Parameter(negative=(), show_default=False),
        result_action="return_value",
        help_format="markdown",
    )


app = _app("kraft-wire", "A KRaft controller for Apache Kafka, with tools for its folders and its protocol.")
app.command(f"{COMMANDS}.server:server", name="server")
app.command(f"{COMMANDS}.dev:dev", name="dev")
app.command(f"{COMMANDS}.dump_log:dump_log", name="dump-log")
app.command(f"{COMMANDS}.fsck:fsck", name="fsck")
app.command(f"{COMMANDS}.sim:sim", name="sim")

storage = _app("storage", "Prepare and inspect the folders of a Kafka node.")
storage.command(f"{COMMANDS}.storage_format:storage_format", name="format")
storage.command(f"{COMMANDS}.storage_info:storage_info", name="info")
storage.command(f"{COMMANDS}.storage_random_uuid:storage_random_uuid", name="random-uuid")
storage.command(f"{COMMANDS}.storage_versions:version_mapping", name="version-mapping")
storage.command(f"{COMMANDS}.storage_versions:feature_dependencies", name="feature-dependencies")
app.command(storage)

codec = _app("codec", "Decode and encode messages of Kafka's protocol: JSON lines in, JSON lines out.")
codec.command(f"{COMMANDS}.codec_decode:codec_decode", name="decode")
codec.command(f"{COMMANDS}.codec_encode:codec_encode", name="encode")
app.command(codec)

pipeline = _app("pipeline", "Clusters' metadata logs as tables: what to do with them where they are kept.")
pipeline.command(f"{COMMANDS}.pipeline_report:pipeline_report", name="report")
pipeline.command(f"{COMMANDS}.pipeline_restore:pipeline_restore", name="restore")
pipeline.command(f"{COMMANDS}.pipeline_run:pipeline_run", name="run")
app.command(pipeline)


def _resolve(commands: App) -> None:
    """Import what has not been needed yet: a list of commands shows the first line of each one's help."""
    for name in commands:
        if name not in (*commands.help_flags, *commands.version_flags):
            _resolve(commands[name])


def run(words: Sequence[str]) -> int:
    """Parse a command line and run its command; returns the exit code."""
    if HELP_FLAGS & set(words) or set(words) <= GROUPS:
        _resolve(app)
    try:
        code = app(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        print(f"kraft-wire: {error}", file=sys.stderr)
        return EXIT_FAILED
    return code if isinstance(code, int) else EXIT_OK
