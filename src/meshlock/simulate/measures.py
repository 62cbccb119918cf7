"""What a run is measured by, gathered as it goes."""

from __future__ import annotations

from array import array


class Client:
    """One request of one node: from asking, through entering, to leaving."""

    def __init__(self, number: int, node: int, want: int, priority: int, asked: float) -> None:
        self.number = number
        self.node = node
        self.want = want
        self.priority = priority
        self.asked = asked
        self.inside = False


class Measures:
    """Counts and times; :mod:`.report` makes figures of them."""

    def __init__(self, nodes: int) -> None:
        self.requested = 0
        self.entries = 0
        self.messages: dict[str, int] = {}
        self.crossings = 0  # of links by messages: more than messages where they are routed
        self.waits: array[float] = array("d")
        self.waits_by_priority: dict[int, array[float]] = {}
        self.entries_by_node = array("l", bytes(array("l").itemsize * nodes))
        self.held = 0
        self.held_since = 0.0
        self.used = 0.0  # integral of permits in use over time
        self.waiting = 0
        self.free_since: list[float] = []  # when clients left although others were waiting
        self.sync_total = 0.0
        self.sync_count = 0

    def asks(self) -> None:
        self.requested += 1
        self.waiting += 1

    def enters(self, client: Client, now: float) -> None:
        wait = now - client.asked
        self.entries += 1
        self.waiting -= 1
        self.waits.append(wait)
        levels = self.waits_by_priority.get(client.priority)
        if levels is None:
            levels = self.waits_by_priority[client.priority] = array("d")
        levels.append(wait)
        self.entries_by_node[client.node] += 1
        if self.free_since:
            self.sync_total += now - self.free_since.pop()
            self.sync_count += 1
        self.hold(client.want, now)

    def leaves(self, client: Client, now: float) -> None:
        self.hold(-client.want, now)
        if self.waiting > 0:
            self.free_since.append(now)

    def hold(self, more: int, now: float) -> None:
        self.used += self.held * (now - self.held_since)
        self.held_since = now
        self.held += more
