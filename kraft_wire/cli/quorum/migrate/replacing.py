"""Replace the software of all controllers, one after the other, each on its own folder. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kraft_wire.cli.quorum.migrate import commands
from kraft_wire.cli.quorum.migrate.facts import (
    CLUSTER,
    Controller,
    Finding,
    Quorum,
    Software,
    State,
    Step,
    Verdict,
    not_known,
)
from kraft_wire.cli.quorum.migrate.properties import identity_findings
from kraft_wire.cli.quorum.migrate.voters import in_order, readiness, restart_note

Findings = Callable[[Controller], Iterable[Finding]]


def replacement(
    quorum: Quorum, wanted: Software, of_cluster: Iterable[Finding], of_controller: Findings
) -> Verdict:
    """Judge a quorum whose controllers are all to run the wanted software.

    ``of_controller`` finds what a controller that doesn't run it yet has in the way. A controller that has
    stopped is started with the wanted software, unless something is in the way.
    """
    controllers = in_order(quorum)
    states = {each.name: _state(each, wanted) for each in controllers}
    left = [each for each in controllers if states[each.name] == "to do"]
    stopped = [each for each in controllers if states[each.name] == "not known" and not each.fetches]
    found = list(identity_findings(quorum))
    if left or stopped:
        found += [*of_cluster, *restart_note(quorum)]
    for each in (*stopped, *left):
        found += of_controller(each)
    found = [*readiness(quorum, lambda each: _start(each, wanted, found)), *found]
    found += [_unknown(each) for each in controllers if states[each.name] == "not known" and each.fetches]
    return Verdict(tuple(found), states, _step(controllers, states, wanted, found))


def _state(controller: Controller, wanted: Software) -> State:
    if controller.software == wanted:
        return "done"
    if controller.software != "unknown":
        return "to do"
    return "as it is" if not controller.is_voter and not controller.fetches else "not known"


def _start(controller: Controller, wanted: Software, found: Sequence[Finding]) -> str:
    """Return the line that starts a controller that has stopped, "" if something else comes first."""
    is_blocked = any(each.kind == "in the way" and each.node == controller.name for each in found)
    return "" if is_blocked else commands.start(controller, wanted)


def _unknown(controller: Controller) -> Finding:
    why = f": {controller.problem}" if controller.problem else ""
    return not_known(
        controller.name,
        f"which software it runs, because it doesn't answer{why}",
        "see that this machine reaches it",
    )


def _step(
    controllers: Sequence[Controller], states: dict[str, State], wanted: Software, found: Sequence[Finding]
) -> Step | None:
    """Return the step of the first controller that isn't done: the leader is the last one."""
    for each in controllers:
        if states[each.name] == "to do":
            own = [finding for finding in found if finding.node in (CLUSTER, each.name)]
            lines = (*commands.first_clear(own), *_lines(each, wanted))
            return Step(each.name, f"{wanted} takes over its folder", lines)
        if states[each.name] == "not known":
            line = f"# find out what {each.name} runs"
            return Step(each.name, "its software isn't known", (line,))
    return None


def _lines(controller: Controller, wanted: Software) -> list[str]:
    """Return the lines that replace a controller. kraft-wire checks the folder before it takes it over."""
    folder = controller.file.folder if controller.file is not None else None
    check = [commands.fsck(folder.path)] if folder is not None and wanted == "kraft-wire" else []
    return [commands.stop(controller), *check, commands.start(controller, wanted)]
