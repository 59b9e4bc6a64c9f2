"""Format the figures as tables: plain for a terminal, Markdown for the documentation."""

from __future__ import annotations

from typing import Any

import msgspec

from compat.benches.codec.codecs import KIO, OURS_COMPILED, OURS_PURE
from compat.benches.codec.imports import MIB, ImportCost
from compat.benches.codec.measure import (
    DECODE,
    DECODE_OTHER_IDS,
    ENCODE,
    OPERATIONS,
    Effort,
    Measured,
    Row,
    Timing,
)
from compat.benches.codec.payloads import Goals
from compat.benches.codec.workers import ALL_CODECS, JAVA, JAVA_KAFKA
from compat.benches.machine import Machine

ABSENT = "–"
OUR_TIERS = (OURS_PURE, OURS_COMPILED)
SHORT_NAMES = {OURS_PURE: "ours", OURS_COMPILED: "compiled"}


class Report(msgspec.Struct, frozen=True):
    """All results of one run."""

    machine: Machine
    measured: Measured
    imports: list[ImportCost]
    effort: Effort

    @property
    def codecs(self) -> list[str]:
        return [codec for codec in ALL_CODECS if codec in self.measured.versions]

    @property
    def tiers(self) -> list[str]:
        return [codec for codec in OUR_TIERS if codec in self.codecs]

    def to_json(self) -> dict[str, Any]:
        return {
            "machine": msgspec.to_builtins(self.machine),
            "versions": self.measured.versions,
            "effort": msgspec.to_builtins(self.effort),
            "messages": [_row_to_json(row, self.tiers) for row in self.measured.rows],
            "imports": [_import_to_json(cost) for cost in self.imports],
        }


class Verdict(msgspec.Struct, frozen=True):
    """The speed of one of our tiers as a multiple of kio's, by best and by median round, and the goal."""

    best: float
    median: float
    goal: float | None

    @property
    def word(self) -> str:
        """Whether the goal is reached, by the best rounds, which other load affects least."""
        if self.goal is None:
            return ""
        return "reached" if self.best >= self.goal else "missed"


def verdict(row: Row, operation: str, tier: str) -> Verdict | None:
    """Compare one of our tiers with kio; None if one of them wasn't measured."""
    timings = row.timings.get(operation, {})
    if KIO not in timings or tier not in timings:
        return None
    goals: Goals = row.payload.compiled if tier == OURS_COMPILED else row.payload.pure
    kio, ours = timings[KIO], timings[tier]
    goal: float | None = {DECODE: goals.decode, ENCODE: goals.encode}.get(operation)
    return Verdict(kio.best_ns / ours.best_ns, kio.median_ns / ours.median_ns, goal)


def plain(report: Report) -> str:
    """Return a table for each operation, with figures as "best (median)", and a table of the imports."""
    blocks = [_about(report, report.machine)]
    for operation in (*OPERATIONS, DECODE_OTHER_IDS):
        heading = [
            f"{operation}, ns per call: best round (median)",
            *(_title(codec) for codec in report.codecs),
        ]
        for tier in report.tiers:
            heading += [f"kio/{SHORT_NAMES[tier]}", "goal"]
        lines = [heading]
        for row in report.measured.rows:
            if not (timings := row.timings.get(operation, {})):
                continue
            cells = [row.payload.title, *(_plain_timing(timings.get(codec)) for codec in report.codecs)]
            for tier in report.tiers:
                cells += _plain_verdict(verdict(row, operation, tier))
            lines.append(cells)
        if lines[1:]:
            blocks.append(_aligned(lines))
    if report.imports:
        lines = [["import", "best (median)", "memory", "goal"]]
        for cost in report.imports:
            times = f"{cost.best_s * 1000:,.0f} ({cost.median_s * 1000:,.0f}) ms"
            lines.append([cost.imported.title, times, _mib(cost), _import_goal(cost)])
        blocks.append(_aligned(lines))
    return "\n\n".join(blocks)


def markdown(report: Report) -> str:
    """Return the tables as Markdown; bold figures miss their goal or, without a goal, are slower than kio."""
    heading = ["ns per call, decode / encode", *(_title(codec) for codec in report.codecs)]
    heading += [f"kio ÷ {SHORT_NAMES[tier]}" for tier in report.tiers]
    lines = [heading, ["---"] * len(heading)]
    for row in report.measured.rows:
        cells = [row.payload.title, *(_markdown_timings(row, codec) for codec in report.codecs)]
        cells += [_markdown_verdicts(row, tier) for tier in report.tiers]
        lines.append(cells)
    blocks = [_about(report, report.machine), _piped(lines), _goals(report)]
    if others := [row for row in report.measured.rows if row.timings.get(DECODE_OTHER_IDS)]:
        blocks.append(_markdown_other_ids(report, others))
    if report.imports:
        lines = [["import", "time", "memory"], ["---"] * 3]
        for cost in report.imports:
            lines.append([cost.imported.title, f"{cost.best_s * 1000:,.0f} ms", _mib(cost)])
        blocks.append(_piped(lines))
    return "\n\n".join(blocks)


def _markdown_other_ids(report: Report, rows: list[Row]) -> str:
    heading = ["ns per call, " + DECODE_OTHER_IDS, *(_title(codec) for codec in report.codecs)]
    heading += [f"kio ÷ {SHORT_NAMES[tier]}" for tier in report.tiers]
    lines = [heading, ["---"] * len(heading)]
    for row in rows:
        timings = row.timings[DECODE_OTHER_IDS]
        cells = [f"{timings[codec].best_ns:,.0f}" if codec in timings else ABSENT for codec in report.codecs]
        cells += [_markdown_verdict(verdict(row, DECODE_OTHER_IDS, tier)) for tier in report.tiers]
        lines.append([row.payload.title, *cells])
    return _piped(lines)


def _about(report: Report, machine: Machine) -> str:
    versions = [f"{codec} {version}" for codec, version in report.measured.versions.items() if codec != JAVA]
    if JAVA in report.measured.versions:
        versions.append(f"Kafka {JAVA_KAFKA} on Java {report.measured.versions[JAVA]}")
    return (
        f"{machine.cpu}, {machine.cores} cores, load {machine.load:.1f} before the run; {machine.python}, "
        f"msgspec {machine.msgspec}; {', '.join(versions)}. "
        f"Copying 64 KiB takes {machine.copy_64_kib_ns:,} ns."
    )


def _title(codec: str) -> str:
    return {OURS_PURE: "ours, pure Python", OURS_COMPILED: "ours, compiled", JAVA: f"Java {JAVA_KAFKA}"}.get(
        codec, codec
    )


def _plain_timing(timing: Timing | None) -> str:
    return ABSENT if timing is None else f"{timing.best_ns:,.0f} ({timing.median_ns:,.0f})"


def _plain_verdict(found: Verdict | None) -> list[str]:
    if found is None:
        return [ABSENT, ""]
    goal = "" if found.goal is None else f"≥ {found.goal:g} {found.word}"
    return [f"{found.best:.2f} ({found.median:.2f})", goal]


def _markdown_timings(row: Row, codec: str) -> str:
    timings = [row.timings[operation].get(codec) for operation in OPERATIONS]
    if None in timings:
        return ABSENT
    return " / ".join(f"{timing.best_ns:,.0f}" for timing in timings if timing)


def _markdown_verdicts(row: Row, tier: str) -> str:
    found = [verdict(row, operation, tier) for operation in OPERATIONS]
    return " / ".join(_markdown_verdict(each) for each in found) if any(found) else ABSENT


def _markdown_verdict(found: Verdict | None) -> str:
    if found is None:
        return ABSENT
    weak = found.word == "missed" or (found.goal is None and found.best < 1)
    return f"**{found.best:.2f}**" if weak else f"{found.best:.2f}"


def _goals(report: Report) -> str:
    judged = [
        found
        for row in report.measured.rows
        for operation in OPERATIONS
        for tier in report.tiers
        if (found := verdict(row, operation, tier)) and found.goal is not None
    ]
    reached = sum(found.word == "reached" for found in judged)
    return f"{reached} of {len(judged)} goals reached; the others are bold."


def _mib(cost: ImportCost) -> str:
    return f"+ {cost.resident_bytes / MIB:.1f} MiB"


def _import_goal(cost: ImportCost) -> str:
    wanted = cost.imported
    if wanted.goal_s is None or wanted.goal_bytes is None:
        return ""
    reached = cost.best_s < wanted.goal_s and cost.resident_bytes <= wanted.goal_bytes
    bounds = f"< {wanted.goal_s * 1000:.0f} ms, ≤ {wanted.goal_bytes / MIB:.0f} MiB"
    return f"{bounds} {'reached' if reached else 'missed'}"


def _row_to_json(row: Row, tiers: list[str]) -> dict[str, Any]:
    return {
        "message": row.payload.message,
        "version": row.payload.version,
        "bytes": len(row.payload.data),
        "timings": msgspec.to_builtins(row.timings),
        "verdicts": [
            {"operation": operation, "codec": tier, "word": found.word, **msgspec.to_builtins(found)}
            for operation in row.timings
            for tier in tiers
            if (found := verdict(row, operation, tier))
        ],
    }


def _import_to_json(cost: ImportCost) -> dict[str, Any]:
    return {
        "title": cost.imported.title,
        "best_s": cost.best_s,
        "median_s": cost.median_s,
        "resident_bytes": cost.resident_bytes,
        "goal": _import_goal(cost),
    }


def _aligned(lines: list[list[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            [
                line[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
            ]
        )
        for line in lines
    )


def _piped(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
