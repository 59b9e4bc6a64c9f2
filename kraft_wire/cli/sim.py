"""``kraft-wire sim``: run a seed in the simulator."""

from __future__ import annotations

from kraft_wire.cli.errors import EXIT_FAILED, EXIT_OK


def sim(*, seed: int, seeds: int = 1, seconds: int = 120, trace: bool = False) -> int:
    """Run what a seed stands for in the deterministic simulator, and say whether everything held.

    Parameters
    ----------
    seed
        The first seed.
    seeds
        How many of them, one after the other.
    seconds
        How much time to simulate.
    trace
        Print every event.
    """
    from kraft_wire.sim.simulation import simulate
    from kraft_wire.sim.swarm import options_of

    code = EXIT_OK
    for number in range(seed, seed + seeds):
        result = simulate(options_of(number, seconds), print if trace else None)
        print(
            f"seed {number}: {result.events} events, {result.simulated_seconds:.1f} simulated seconds,"
            f" {result.acknowledged} acknowledged, hash {result.hash}"
        )
        if result.violation is not None:
            code = EXIT_FAILED
            print(result.options)
            print(result.details)
    return code
