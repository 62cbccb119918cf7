"""Make a failing run small: fewer actions, fewer nodes, the same failure.

Actions are left out in ever smaller pieces (delta debugging); whatever has become impossible
is left out too, every message then arrives and every client leaves, and the piece stays out if a
property that was violated still is. Nodes that nothing happens at any more are taken away
as long as the rest hangs together. What remains cannot lose a single action.
"""

from __future__ import annotations

from meshlock.algorithms.actor import NIL
from meshlock.errors import Refused, setting
from meshlock.simulate.schedule import Action, Schedule
from meshlock.topology.graphs import Graph


def violated(schedule: Schedule) -> set[str]:
    """What is wrong when this is played to the end; a failing handler counts too.

    In a network that is parted at the end, clients may wait.
    """
    try:
        play = schedule.play(strict=False)
        if schedule.leased and play.run.monitor.violated:
            return set(play.run.monitor.violated)  # the end takes many leases
        play.finish()
        wrong = set(play.outcome().violated)
        return wrong if play.run.monitor.connected else wrong - {"served"}
    except Refused:
        return set()
    except Exception:  # a handler of a broken algorithm; that it fails is the finding
        return {"handlers"}


def shrink(schedule: Schedule) -> tuple[Schedule, set[str]]:
    """The smallest schedule found, and which properties it violates."""
    if schedule.custody:
        raise Refused(f"A run with {setting('failures')} custody cannot be shrunk.")
    wrong = violated(schedule)
    if not wrong:
        raise Refused(
            "This run violates no property when it is played to its end: there is "
            "nothing to shrink."
        )
    while True:
        smaller = without_nodes(fewer_actions(schedule, wrong), wrong)
        if len(smaller.actions) == len(schedule.actions) and smaller.size == schedule.size:
            return smaller, violated(smaller)
        schedule = smaller


def still(schedule: Schedule, actions: list[Action], wrong: set[str]) -> bool:
    return bool(violated(schedule.but(actions)) & wrong)


def fewer_actions(schedule: Schedule, wrong: set[str]) -> Schedule:
    actions = schedule.actions
    piece = max(1, len(actions) // 2)
    while True:
        at = 0
        lost = False
        while at < len(actions):
            rest = actions[:at] + actions[at + piece :]
            if still(schedule, rest, wrong):
                actions = rest
                lost = True
            else:
                at += piece
        if piece > 1:
            piece //= 2
        elif not lost:
            break
    if "handlers" not in wrong:  # else it breaks off, and all of it is needed
        actions = schedule.but(actions).play(strict=False).done
    return schedule.but(actions)


def without_nodes(schedule: Schedule, wrong: set[str]) -> Schedule:
    """Take away nodes that no action is about, the highest first."""
    node = schedule.size - 1
    while node > 0:
        busy = any(node in (action.one, action.other) for action in schedule.actions)
        if not busy:
            smaller = without(schedule, node)
            if smaller is not None and violated(smaller) & wrong:
                schedule = smaller
        node -= 1
    return schedule


def without(schedule: Schedule, gone: int) -> Schedule | None:
    """The same without this node, the others renumbered; None if that cuts network or tree, or
    may take a member away."""
    if schedule.leased or gone in schedule.tree or schedule.tree[gone : gone + 1] == [NIL]:
        return None
    names = {node: node - (node > gone) for node in range(schedule.size) if node != gone}
    links = [
        (names[one], names[other]) for one, other in schedule.links if gone not in (one, other)
    ]
    size = schedule.size - 1
    if len(Graph(size, links).roots) > 1:
        return None
    tree = [names.get(father, NIL) for node, father in enumerate(schedule.tree) if node != gone]
    actions = [action.renamed(names) for action in schedule.actions]
    return Schedule(schedule.algorithm, schedule.setup, size, links, tree, actions)
