"""From kraft-wire's controllers back to Java's. No I/O.

Java ignores the files by which kraft-wire limits a node's votes, and truncates a damaged log without a word
(docs/recovery.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kraft_wire.cli.quorum.migrate.commands import fsck
from kraft_wire.cli.quorum.migrate.facts import (
    CLUSTER,
    Controller,
    Finding,
    Folder,
    Quorum,
    Verdict,
    in_the_way,
    note,
)
from kraft_wire.cli.quorum.migrate.properties import items, sources, unchecked_folder
from kraft_wire.cli.quorum.migrate.releases import release_of
from kraft_wire.cli.quorum.migrate.replacing import replacement
from kraft_wire.configs.own_keys import DRAFT_LISTENERS_KEY, PREFIX
from kraft_wire.metadata.features.metadata_version import FEATURE_NAME, parse_release_version
from kraft_wire.storage.recovery.vote_guards import NO_VOTE_UP_TO

FIRST_WITH_DYNAMIC_VOTERS: Final = 21
"""metadata.version 3.9-IV0: Kafka 3.9 is the first that reads voters in the log."""


def judge(quorum: Quorum, release: str | None = None) -> Verdict:
    """Judge a quorum whose controllers are all to be Java's, of this release if it is given ("4.3"). Raises
    FeatureError for a release that isn't known."""
    return replacement(quorum, "Java", _level_findings(quorum, release), _controller_findings)


def _level_findings(quorum: Quorum, release: str | None) -> Iterator[Finding]:
    level = quorum.levels.get(FEATURE_NAME, 0)
    least = max(level, FIRST_WITH_DYNAMIC_VOTERS if quorum.kraft_version else 0)
    because = f"metadata.version is {level}, kraft.version {quorum.kraft_version}"
    known = release_of(least)
    needed = f"Kafka {known}" if known else f"a release that knows metadata.version {least}"
    if release is None:
        yield note(CLUSTER, f"Java's controllers must be of {needed} or newer: {because}")
    elif parse_release_version(release) < least:
        yield in_the_way(CLUSTER, f"Kafka {release} is too old: {because}", f"use {needed} or newer")


def _controller_findings(controller: Controller) -> Iterator[Finding]:
    folder = controller.file.folder if controller.file is not None else None
    yield from unchecked_folder(controller, fsck(folder.path) if folder is not None else "")
    for source in sources(controller)[:1]:
        own = sorted(key for key in source.properties if key.startswith(PREFIX))
        drafted = items(source.properties, DRAFT_LISTENERS_KEY)
        if drafted:
            own.remove(DRAFT_LISTENERS_KEY)
            yield in_the_way(
                controller.name,
                f"{source.text}: {DRAFT_LISTENERS_KEY} names {', '.join(drafted)}; Java doesn't speak the "
                "draft of KIP-853, and could neither follow nor vote there",
                "let the controllers speak with each other on a listener that isn't drafted, and remove the "
                "key on all of them",
            )
        if own:
            yield note(controller.name, f"{source.text}: Java ignores {', '.join(own)}")
    if folder is None:
        return
    for damage in folder.damage:
        text = f"{folder.path}: {damage}; Java would cut the log there without a word"
        yield in_the_way(controller.name, text, "see docs/recovery.md", fsck(folder.path))
    yield from _guard_findings(controller, folder)


def _guard_findings(controller: Controller, folder: Folder) -> Iterator[Finding]:
    for guard in folder.guards:
        if guard == NO_VOTE_UP_TO:
            if folder.no_vote_up_to < folder.quorum_epoch:
                continue
            text = f"it must not vote up to epoch {folder.no_vote_up_to}, because its quorum-state was lost"
            do = "format it again, as for a lost disk (docs/recovery.md)"
        else:
            text = "it must not vote before it holds again what its log has lost"
            do = "let kraft-wire run on it until the file is gone, which takes a leader and some time"
        yield in_the_way(controller.name, f"{folder.path} has {guard}: {text}; Java ignores the file", do)
