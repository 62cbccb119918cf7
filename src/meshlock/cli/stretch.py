"""A stretch of hard work: its CPU time, and an end by Ctrl-C that keeps what was found."""

from __future__ import annotations

import gc
from time import process_time


class Stretch:
    """Use it with ``with``; afterwards it knows ``cpu`` and whether it was ``interrupted``.

    Runs and explorations make no cycles; looking for some would cost from a third of the
    time to all of it again.
    """

    cpu = 0.0
    interrupted = False

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
