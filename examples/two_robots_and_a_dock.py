"""Two robots, each a process of its own, share one charging dock. No server.

The dock itself turns away a robot that comes with an older fence than it has seen: that catches
even a robot that was paused while it held the permit and does not know that time has passed.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection

import meshlock


class Dock:
    """The resource. It trusts nobody: fences must grow."""

    def __init__(self) -> None:
        self.highest = 0

    def charge(self, robot: str, fence: int) -> None:
        if fence <= self.highest:
            raise RuntimeError(f"{robot} comes with the old fence {fence}")
        self.highest = fence
        print(f"{robot} charges (fence {fence})")
        time.sleep(0.05)


def robot(name: str, peers: list[str], dock: Connection) -> None:
    with meshlock.BlockingNode(name, peers=peers, state=None) as node:
        dock.send(node.address)
        docks = node.pool("dock", permits=1)
        for visit in range(3):
            with docks.acquire(priority=visit, timeout=10) as grant:
                dock.send((name, grant.fence))
                dock.recv()  # charged: only then may the permit go to the other
        dock.send(None)
        dock.recv()  # stay until both are done: a robot on its own has nobody to share with


def main() -> None:
    dock = Dock()
    pipes: list[Connection] = []
    robots: list[multiprocessing.Process] = []
    peers: list[str] = []
    for name in ("huey", "dewey"):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(
            target=robot, args=(name, list(peers), theirs), daemon=True
        )
        process.start()
        peers.append(ours.recv())  # its address: one is all that the next robot needs
        pipes.append(ours)
        robots.append(process)
    busy = list(pipes)
    while busy:
        for pipe in multiprocessing.connection.wait(busy):
            assert isinstance(pipe, Connection)
            visit = pipe.recv()
            if visit is None:
                busy.remove(pipe)
            else:
                dock.charge(*visit)
                pipe.send("charged")
    for pipe, process in zip(pipes, robots, strict=True):
        pipe.send("done")
        process.join()


if __name__ == "__main__":
    main()
