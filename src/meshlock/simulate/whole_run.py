"""Run to the end, or to Ctrl-C, and measure the CPU time that it takes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time

from meshlock.properties.sentences import broken_off
from meshlock.simulate.engine import Simulation

SLICE = 50_000
"""Events between two looks at the progress bar and at Ctrl-C."""


class Stretch:
    """A stretch of hard work. Use it with ``with``; afterwards it knows ``cpu`` and whether it
    was ``interrupted`` by Ctrl-C, which then keeps what was found.

    Runs and explorations make no cycles; looking for some would cost from a third of the
    time to all of it again.
    """

    def __init__(self) -> None:
        self.cpu = 0.0
        self.interrupted = False

    def __enter__(self) -> Stretch:
        gc.freeze()
        gc.disable()
        self.cpu = -process_time()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.cpu += process_time()
        gc.enable()
        gc.unfreeze()
        self.interrupted = kind is KeyboardInterrupt
        return self.interrupted


def whole_run(run: Simulation, look: Callable[[], None]) -> Stretch:
    """Run to the end, and call ``look`` from time to time."""
    stretch = Stretch()
    with stretch:
        run.start()
        while goes_on(run):
            look()
        run.finish()
    return stretch


def goes_on(run: Simulation) -> bool:
    """Let more happen; False at the end, or where the handlers of a mutant fail."""
    try:
        return run.run(SLICE)
    except Exception as error:
        if "/" not in run.algorithm.name:
            raise
        run.monitor.report("handlers", run.now, broken_off(error))
        return False
