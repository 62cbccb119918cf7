"""Properties of one's own: a function that looks at what there is, and says what is wrong.

    def one_writer(seen):
        writers = [node.number for node in seen.nodes if node.writing]
        return f"nodes {writers} write at once" if len(writers) > 1 else ""

A search calls it in every state, and a simulation or an audit after every step. It returns a
sentence, or nothing where all is well. An algorithm names such functions in its ``structure``; a
person names a file and one of its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

from meshlock.algorithms.actor import Actor, Algorithm, Frozen, Message
from meshlock.errors import Refused
from meshlock.properties import leases, monitor
from meshlock.properties.structure import Clients, Structure, Wrong


class SeenNode(SimpleNamespace):
    """A node: its ``number``, its variables by their names, ``inbox``: the messages on their way to
    it, and its clients' numbers: ``waiting``, ``inside``."""


class SeenMessage(SimpleNamespace):
    """A message: ``kind``, ``sender``, ``receiver``, and its fields by their names."""


class SeenWorld(NamedTuple):
    """All there is at one moment. Lists and sets of nodes are tuples here."""

    nodes: list[Any]


OwnProperty = Callable[[SeenWorld], object]


def own_name(judge: OwnProperty) -> str:
    return judge.__name__.replace("_", "-")


def own_names(algorithm: Algorithm) -> list[str]:
    return [own_name(judge) for judge in algorithm.structure if not isinstance(judge, str)]


def load_property(text: str) -> OwnProperty:
    """The function that is written as ``mine.py:name``."""
    from meshlock.algorithms.outside import of_file

    where, _, name = text.partition(":")
    if Path(where).suffix != ".py":
        raise Refused(f"A property is a function in a file, such as rules.py:name, not '{text}'.")
    module = of_file(Path(where))
    if name == "":
        raise Refused(f"Say which function of {where} is the property, as in {where}:name.")
    judge = getattr(module, name.replace("-", "_"), None)
    if not isinstance(judge, FunctionType):
        raise Refused(f"{where} has no function '{name}'.")
    return judge


def own_property(given: str | OwnProperty, taken: Iterable[str] = ()) -> OwnProperty:
    """A function, or the one in a file that is named. It has no name that is ``taken``."""
    judge = load_property(given) if isinstance(given, str) else given
    if not (callable(judge) and hasattr(judge, "__name__")):
        raise Refused(f"A property is a function with a name, not {str(judge)[:60]}.")
    if own_name(judge) in (*monitor.NAMES, *leases.NAMES, *taken):
        raise Refused(
            f"The property '{own_name(judge)}' has the name of one of meshlock's own: give it "
            f"another name."
        )
    return judge


def is_own(given: str | OwnProperty) -> bool:
    """Is this a function, or the name of one in a file?"""
    return not isinstance(given, str) or ".py" in given


def wrong_by(judges: Iterable[OwnProperty], seen: SeenWorld) -> list[Wrong]:
    found: list[Wrong] = []
    for judge in judges:
        try:
            said = judge(seen)
        except (Exception, SystemExit) as error:
            from meshlock.algorithms.outside import said as told

            path = Path(judge.__code__.co_filename) if hasattr(judge, "__code__") else Path()
            raise Refused(f"{own_name(judge)} does not run: {told(error, path)}.") from error
        if said is not None and not isinstance(said, str):
            raise Refused(
                f"{own_name(judge)} returns {what_kind(said)}: let it return a sentence that says "
                f"what is wrong, or nothing where all is well."
            )
        if said:
            found.append((own_name(judge), said))
    return found


def what_kind(said: object) -> str:
    """True and False might mean either verdict, so they are none."""
    if isinstance(said, Coroutine):
        said.close()
    plain = isinstance(said, bool | int | float)
    return str(said) if plain else f"a value of the type {type(said).__name__}"


class OwnProperties(Structure):
    """Judged of every state of a search."""

    def __init__(self, judges: Sequence[OwnProperty]) -> None:
        super().__init__({own_name(judge) for judge in judges})
        self.judges = judges

    def glimpse(self, node: Actor, inbox: list[Message], clients: Clients) -> Frozen:
        coming = tuple([(one.sender, one.receiver, one.fields, one.freeze()) for one in inbox])
        return node.variables, node.freeze(), coming, *clients

    def wrong(self, seen: tuple[int, ...], neighbours: list[list[int]]) -> list[Wrong]:
        nodes = [seen_node(i, *self.glimpses[number]) for i, number in enumerate(seen)]
        return wrong_by(self.judges, SeenWorld(nodes))


def seen_node(number: int, *glimpse: Any) -> SeenNode:
    names, values, coming, waiting, inside = glimpse
    inbox = [
        SeenMessage(
            **dict(zip(fields, frozen[1:], strict=True)), kind=frozen[0], sender=one, receiver=other
        )
        for one, other, fields, frozen in coming
    ]
    variables = dict(zip(names, values, strict=True))
    variables.update(number=number, inbox=inbox, waiting=waiting, inside=inside)
    return SeenNode(**variables)
