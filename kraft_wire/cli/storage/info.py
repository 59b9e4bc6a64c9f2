"""``kraft-wire storage info``: print the identity of a node's folders, and their problems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kraft_wire.cli.errors import EXIT_FAILED, EXIT_OK
from kraft_wire.log.files import MetaProperties
from kraft_wire.server.config.server_config import load_node_config
from kraft_wire.storage.errors import CorruptFile, NotFormatted
from kraft_wire.storage.folder import read_meta_properties


def storage_info(*, config: Annotated[str, Parameter(alias="-c")]) -> int:
    """Print the identity of a node's folders, and what is wrong with them.

    The exit status is 1 if a folder is missing, isn't formatted, or belongs to another cluster or node.

    For example:

        kraft-wire storage info -c controller.properties

    Parameters
    ----------
    config
        The node's properties file.
    """
    report = FolderReport()
    for directory in load_node_config(config).directories:
        report.add(Path(directory))
    for line in report.lines():
        print(line)
    return EXIT_FAILED if report.problems else EXIT_OK


class FolderReport:
    """The folders that exist, the first one's identity, and all problems (StorageTool.infoCommand)."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._found: list[str] = []
        self._first: MetaProperties | None = None

    def add(self, directory: Path) -> None:
        """Read one folder. Raises OSError if its files can't be read."""
        if not directory.is_dir():
            what = "is not a directory" if directory.exists() else "does not exist"
            self.problems.append(f"{directory} {what}")
            return
        self._found.append(str(directory))
        try:
            self._compare(directory, read_meta_properties(directory))
        except NotFormatted:
            self.problems.append(f"{directory} is not formatted.")
        except CorruptFile as error:
            self.problems.append(str(error))

    def lines(self) -> list[str]:
        """Return the report, in the parts and the order of Kafka's tool."""
        lines = [*_section("log director", "y", "ies", self._found)]
        if self._first is not None:
            lines += [f"Found metadata: {{{_identity(self._first)}}}", ""]
        return lines + _section("problem", "", "s", self.problems)

    def _compare(self, directory: Path, properties: MetaProperties) -> None:
        if self._first is None:
            self._first = properties
        elif properties.cluster_id != self._first.cluster_id:
            self.problems.append(f"{directory} belongs to another cluster than the folders before it")
        elif properties.node_id != self._first.node_id:
            self.problems.append(f"{directory} belongs to another node than the folders before it")


def _section(stem: str, singular: str, plural: str, items: Sequence[str]) -> list[str]:
    if not items:
        return []
    title = f"Found {stem}{singular if len(items) == 1 else plural}:"
    return [title, *(f"  {item}" for item in items), ""]


def _identity(properties: MetaProperties) -> str:
    pairs = {
        "cluster.id": properties.cluster_id,
        "directory.id": properties.directory_id,
        "node.id": properties.node_id,
        "version": "1",
    }
    return ", ".join(f"{key}={value}" for key, value in pairs.items() if value is not None)
