"""What is wrong, in the words that the monitors and the checker share."""

from __future__ import annotations

from pathlib import Path
from typing import Final

OUR_OWN: Final = (str(Path(__file__).parents[1]), "src/meshlock/")
"""How the names of our own files begin; the second where they were compiled."""


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def overuse(node: int, want: int, held: int, permits: int) -> str:
    return f"node {node} enters with {want}, so {held} permits are in use, but there are {permits}"


def uninvited(node: int, client: int) -> str:
    return f"node {node} lets client {client} in, which does not wait"


def out_of_order(node: int, priority: float, due: float) -> str:
    return (
        f"node {node} enters with priority {priority:g} although nothing was in "
        f"flight and a request of priority {due:g} was waiting"
    )


def lent_out_of_order(node: int, priority: float, due: float) -> str:
    return (
        f"permits are sent to node {node}, where {priority:g} is the highest priority, although "
        f"nothing was in flight and a request of priority {due:g} was waiting"
    )


def let_in_by_a_raise(node: int) -> str:
    return f"node {node} grants permits to one request because another became more urgent"


def tokens(node: int, balance: int) -> str:
    return f"node {node} {'lost' if balance > 0 else 'made'} {abs(balance)} token"


def permits(node: int, balance: int) -> str:
    return f"node {node} {'lost' if balance > 0 else 'made'} {counted(abs(balance), 'permit')}"


def unserved(waiting: int) -> str:
    verb = "waits" if waiting == 1 else "wait"
    return f"{counted(waiting, 'request')} {verb} and nothing can happen"


def no_link(node: int, receiver: int) -> str:
    return f"node {node} sends to node {receiver}, to which it has no link"


def starves(client: int) -> str:
    return (
        f"client {client} waits for ever although every message arrives and every client releases"
    )


def failed(node: int, failure: str) -> str:
    return f"node {node} cannot go on: {failure}"


def broken_off(failure: Exception) -> str:
    return f"the algorithm cannot go on: {raised(failure)}"


def raised(failure: Exception) -> str:
    """What a handler raised, and in which line of a file that is not ours."""
    where, place = "", failure.__traceback__
    while place is not None:
        file = place.tb_frame.f_code.co_filename
        if not file.startswith(OUR_OWN):
            where = f" ({file}, line {place.tb_lineno})"
        place = place.tb_next
    return f"{type(failure).__name__}: {failure}{where}"


def shared_slot(slot: int) -> str:
    return f"slot {slot} is in two grants under valid leases"
