"""The commands and their options. A command's module is imported when it runs, or when its help is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cyclopts import App, CycloptsError, Parameter
from cyclopts.exceptions import MissingArgumentError, UnknownOptionError, UnusedCliTokensError

from kraft_wire.cli.errors import EXIT_OK, UsageError
from kraft_wire.configs.nearest import nearest

COMMANDS = "kraft_wire.cli"
HELP_WORDS = {"--help", "-h", "help"}
VERSION_FLAGS = ("--version", "-V")
LOGGING_OPTIONS = {"--log-level", "--log-format"}
GROUPS = {"storage", "codec", "pipeline", "quorum", "recover", "registrations", "exporters"}
"""Commands that only show their help if nothing follows them, as ``kraft-wire`` alone does."""


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    from kraft_wire.protocol.tier import tier

    try:
        return f"kraft-wire {version('kraft-wire')} ({tier()} codec)"
    except PackageNotFoundError:
        return f"kraft-wire, run from its sources without being installed ({tier()} codec)"


def _default_text(value: object) -> str | None:
    """Show the default of an option in its help, unless it only means that the option isn't given."""
    return None if value in (None, False, ()) else str(value)


def _app(name: str, help: str) -> App:
    return App(
        name,
        help=help,
        version=_version,
        version_flags=VERSION_FLAGS,
        default_parameter=Parameter(negative=(), show_default=_default_text),
        result_action="return_value",
        help_format="markdown",
    )


def _usage(words: str) -> str:
    """Return the usage line of a command with arguments that may be left out or repeated: a line that is made
    from its parameters calls these ARGS."""
    return f"Usage: kraft-wire {words}"


app = _app("kraft-wire", "A KRaft controller for Apache Kafka, with tools for its folders and its protocol.")
app.command(f"{COMMANDS}.server:server", name="server")
app.command(f"{COMMANDS}.observe.observe:observe", name="observe")
app.command(f"{COMMANDS}.dev:dev", name="dev")
app.command(
    f"{COMMANDS}.describe.describe:describe",
    name="describe",
    usage=_usage("describe [SCREEN] [TOPIC...] [OPTIONS]"),
)
app.command(f"{COMMANDS}.dump.dump_log:dump_log", name="dump-log")
app.command(f"{COMMANDS}.fsck:fsck", name="fsck")
app.command(f"{COMMANDS}.sim:sim", name="sim")

storage = _app("storage", "Format and inspect the folders of a Kafka node.")
storage.command(f"{COMMANDS}.storage.format:storage_format", name="format")
storage.command(f"{COMMANDS}.storage.info:storage_info", name="info")
storage.command(f"{COMMANDS}.storage.versions:random_uuid", name="random-uuid")
storage.command(f"{COMMANDS}.storage.versions:version_mapping", name="version-mapping")
storage.command(f"{COMMANDS}.storage.versions:feature_dependencies", name="feature-dependencies")
app.command(storage)

codec = _app("codec", "Decode and encode messages of Kafka's protocol: JSON lines in, JSON lines out.")
codec.command(
    f"{COMMANDS}.codec.decode:codec_decode", name="decode", usage=_usage("codec decode [OPTIONS] [FILE]")
)
codec.command(f"{COMMANDS}.codec.encode:codec_encode", name="encode", usage=_usage("codec encode [FILE]"))
app.command(codec)

pipeline = _app("pipeline", "Keep clusters' metadata logs as tables, report on them, restore from them.")
pipeline.command(f"{COMMANDS}.pipeline.report:pipeline_report", name="report")
pipeline.command(f"{COMMANDS}.pipeline.restore:pipeline_restore", name="restore")
pipeline.command(f"{COMMANDS}.pipeline.run:pipeline_run", name="run")
app.command(pipeline)

quorum = _app(
    "quorum", "Show a quorum of controllers, change its voters, check a migration, recover a lost majority."
)
quorum.command(f"{COMMANDS}.quorum.changes.add:quorum_add", name="add")
quorum.command(f"{COMMANDS}.quorum.changes.promote:quorum_promote", name="promote")
quorum.command(f"{COMMANDS}.quorum.changes.remove:quorum_remove", name="remove")
quorum.command(f"{COMMANDS}.quorum.describe:quorum_describe", name="describe")
quorum.command(f"{COMMANDS}.quorum.migrate.migrate:quorum_migrate", name="migrate")
quorum.command(f"{COMMANDS}.quorum.status.status:quorum_status", name="status")
recover = _app("recover", "Go on after the majority of a quorum is lost, or has moved to other addresses.")
recover.command(
    f"{COMMANDS}.quorum.recover.collect:recover_collect",
    name="collect",
    usage=_usage("quorum recover collect --output PATH DIRECTORIES..."),
)
recover.command(
    f"{COMMANDS}.quorum.recover.plan:recover_plan",
    name="plan",
    usage=_usage("quorum recover plan --output PATH [OPTIONS] FILES..."),
)
recover.command(f"{COMMANDS}.quorum.recover.apply:recover_apply", name="apply")
recover.command(f"{COMMANDS}.quorum.recover.verify:recover_verify", name="verify")
quorum.command(recover)
app.command(quorum)

registrations = _app("registrations", "Mend the registrations of controllers.")
registrations.command(f"{COMMANDS}.quorum.changes.refresh:registrations_refresh", name="refresh")
app.command(registrations)

exporters = _app("exporters", "Show, pause and reset the exporters of the active controller.")
exporters.command(f"{COMMANDS}.exporters.list_them:exporters_list", name="list")
exporters.command(f"{COMMANDS}.exporters.order:exporters_pause", name="pause")
exporters.command(f"{COMMANDS}.exporters.order:exporters_resume", name="resume")
exporters.command(f"{COMMANDS}.exporters.order:exporters_reset", name="reset")
app.command(exporters)


@app.command(name="help", usage=_usage("help [COMMAND...]"))
def show_help(*command: str) -> int:
    """Show the help of a command, such as `kraft-wire help storage format`.

    Parameters
    ----------
    command
        The command's words; the list of commands without any.
    """
    return run([*command, "--help"])


@app.command(name="version")
def show_version() -> int:
    """Print the version, and whether messages are read by compiled code."""
    print(_version())
    return EXIT_OK


def _resolve(commands: App) -> None:
    """Import every command: a list of commands shows the first line of each one's help."""
    for name in commands:
        if name not in (*commands.help_flags, *commands.version_flags):
            _resolve(commands[name])


def run(words: Sequence[str]) -> int:
    """Parse a command line and run its command; returns the exit status. Raises UsageError."""
    is_help = bool(HELP_WORDS & set(words)) or set(words) <= GROUPS
    if is_help:
        _resolve(app)
    try:
        code = app(_with_lower_case_values(words), exit_on_error=False, print_error=False)
    except UnusedCliTokensError as error:
        word = (error.unused_tokens or [""])[0]
        raise UsageError(f"unexpected argument {word!r}{nearest(word, _words_of(error.app))}") from None
    except MissingArgumentError as error:
        raise UsageError(_missing_text(error)) from None
    except UnknownOptionError as error:
        word = error.token.keyword or error.token.value
        raise UsageError(f"unknown option {word}{nearest(word, _words_of(error.app))}") from None
    except CycloptsError as error:
        raise UsageError(str(error)) from None
    except SystemExit:
        if is_help:  # the printer of help ends the process with an error if its output isn't read
            return EXIT_OK
        raise
    return code if isinstance(code, int) else EXIT_OK


def _missing_text(error: MissingArgumentError) -> str:
    """Say what is missing: the value of an option that is there, or a whole parameter."""
    text = str(error)
    argument = error.argument
    if argument is None or argument.tokens or error.keyword is not None or "Did you mean" in text:
        return text
    return f"{argument.name} is missing"


def _with_lower_case_values(words: Sequence[str]) -> list[str]:
    """Return the words with the values of the logging options in lower case. These may be in any case, as in
    the environment."""
    lowered = []
    previous = ""
    for word in words:
        option, equals, value = word.partition("=")
        if previous in LOGGING_OPTIONS:
            word = word.lower()
        elif option in LOGGING_OPTIONS:
            word = option + equals + value.lower()
        lowered.append(word)
        previous = word
    return lowered


def _words_of(command: App | None) -> Iterator[str]:
    """The options that a command has, and the commands that a group has."""
    if command is None:
        return
    yield from (name for name in command if not name.startswith("-"))
    if command.default_command is not None:
        for argument in command.assemble_argument_collection():
            yield from (name for name in argument.names if name.startswith("--"))
