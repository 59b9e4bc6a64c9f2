"""The command lines that a migration consists of. No I/O."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kraft_wire.cli.quorum.migrate.facts import Broker, Controller, Finding, Node, Quorum, Software

VOTERS_KEY: Final = "controller.quorum.voters"
BOOTSTRAP_KEY: Final = "controller.quorum.bootstrap.servers"
COPY_SUFFIX: Final = ".before-migration"
"""The suffix of the copy that sed keeps of a properties file."""


def command_line(*words: str) -> str:
    """Return a command line for a POSIX shell."""
    return shlex.join(words)


def kafka_tool(quorum: Quorum, script: str, *words: str) -> str:
    """Return the command line of a script of Kafka's that asks the controllers."""
    config = ("--command-config", quorum.command_config) if quorum.command_config else ()
    return command_line(script, "--bootstrap-controller", quorum.bootstrap, *config, *words)


def our_tool(quorum: Quorum, *words: str) -> str:
    """Return the command line of a command of ours that asks the controllers."""
    config = ("--command-config", quorum.command_config) if quorum.command_config else ()
    return command_line("kraft-wire", *words, "--bootstrap-controller", quorum.bootstrap, *config)


def upgrade_kraft_version(quorum: Quorum) -> str:
    return kafka_tool(quorum, "kafka-features.sh", "upgrade", "--feature", "kraft.version=1")


def unregister_broker(quorum: Quorum, broker: Broker) -> str:
    """Return the command line. This script takes its options after the subcommand."""
    config = ("--config", quorum.command_config) if quorum.command_config else ()
    where = ("--bootstrap-controller", quorum.bootstrap, *config)
    return command_line("kafka-cluster.sh", "unregister", *where, "--id", str(broker.id))


def first_clear(found: Iterable[Finding]) -> Iterator[str]:
    """Yield a comment for each finding that isn't known: it stands before the lines of a step."""
    for each in found:
        if each.kind == "not known":
            whose = f"{each.node}: " if each.node else ""
            yield f"# first clear what is not known: {whose}{each.what}"


def fsck(folder: str) -> str:
    return command_line("kraft-wire", "fsck", folder)


def file_of(node: Node) -> str:
    """Return the path of a node's properties file, or a word that stands for it."""
    return node.file.path if node.file is not None else "FILE"


def start(node: Node, software: Software) -> str:
    """Return the line that starts a node, a comment if its software isn't known."""
    if software == "unknown":
        return f"# start {node.name} again"
    words = ("kraft-wire", "server") if software == "kraft-wire" else ("kafka-server-start.sh",)
    line = command_line(*words, file_of(node))
    return line if node.file is not None else f"{line}  # FILE: the properties file of {node.name}"


def stop(node: Node) -> str:
    """Return the line that stops a node: its process is known if its folder is on this machine. The kernel
    tells 0 or -1 of a process in another container or on another machine, and kill would take these for many
    processes."""
    folder = node.file.folder if node.file is not None else None
    if folder is not None and folder.pid is not None and folder.pid > 0:
        return command_line("kill", str(folder.pid)) + f"  # {node.name}; wait until it has ended"
    return f"# stop {node.name}: send SIGTERM to its process, and wait until it has ended"


def drop_static_voters(node: Node, bootstrap: str | None) -> list[str]:
    """Return the lines that remove controller.quorum.voters from a node's file. ``bootstrap`` is what its
    controller.quorum.bootstrap.servers becomes, None if that stays. Of a key that is given twice Java, and
    kraft-wire, take the last."""
    line = f"{BOOTSTRAP_KEY}={bootstrap}"
    if node.file is None or not node.file.can_be_edited:
        changed = f", and write {line}" if bootstrap is not None else ""
        return [f"# in {_file_text(node)}: remove {VOTERS_KEY}{changed}"]
    path = node.file.path
    pattern = VOTERS_KEY.replace(".", r"\.")
    lines = [
        command_line("sed", f"-i{COPY_SUFFIX}", rf"/^[[:space:]]*{pattern}[[:space:]]*[=:]/d", path),
    ]
    if bootstrap is not None:
        lines.append(
            f"{command_line('printf', chr(92) + 'n%s' + chr(92) + 'n', line)} >> {shlex.quote(path)}"
        )
    return lines


def _file_text(node: Node) -> str:
    return f"the properties file of {node.name}" if node.file is None else node.file.path


def addresses_of(controllers: Sequence[Controller]) -> str:
    """Return the value of controller.quorum.bootstrap.servers that names these controllers."""
    return ",".join(each.address for each in controllers if each.address)
