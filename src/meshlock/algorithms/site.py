"""What the sites of the papers have in common: one client at a time, and mostly one token.

A paper's file adds its messages, its variables and its handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from meshlock.algorithms.actor import NIL, Actor, Effect, Make, Message, Network, Options
from meshlock.algorithms.subclassing import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class OneClientSite(Actor):
    """A node that serves one client at a time, and may know how many nodes there are."""

    no_state: ClassVar[tuple[str, ...]] = ("size",)

    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out)
        self.size = network.size
        self.client = NIL  # who waits or is in

    def others(self) -> list[int]:
        return [*range(self.me), *range(self.me + 1, self.size)]


@mypyc_attr(allow_interpreted_subclasses=True)
class TokenSite(OneClientSite):
    """The holder of the token may enter."""

    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.token_here = network.father(me) == NIL

    def requesting(self) -> bool:
        """Is a client waiting, or in?"""
        return self.client != NIL

    def tokens(self) -> int:
        return 1 if self.token_here else 0

    def free_permits(self) -> int:
        return 1 if self.token_here and not self.requesting() else 0


@mypyc_attr(allow_interpreted_subclasses=True)
class NumberedSite(OneClientSite):
    """It numbers its requests, each higher than all numbers that it has seen. Of two requests the
    one with the lower number goes first; of equal numbers, that of the lower site."""

    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.number = 0  # of the request being made; 0 if none
        self.highest = 0  # number seen in any request

    def take_number(self) -> None:
        self.highest += 1
        self.number = self.highest

    def see_number(self, number: int) -> None:
        self.highest = max(self.highest, number)

    def before(self, number: int, site: int) -> bool:
        """Does our request come before this one?"""
        return (self.number, self.me) < (number, site)


@mypyc_attr(allow_interpreted_subclasses=True)
class TokenMessage(Message):
    """The token on its way, and with it the only permit."""

    def tokens(self) -> int:
        return 1

    def permits(self) -> int:
        return 1


@mypyc_attr(allow_interpreted_subclasses=True)
class Numbered(Message):
    """It says the number of a request."""

    wire: ClassVar[tuple[str, ...]] = ("count",)

    def __init__(self, receiver: int, number: int) -> None:
        super().__init__(receiver)
        self.number = number


@mypyc_attr(allow_interpreted_subclasses=True)
class Counted(Message):
    """It is about this number of permits."""

    wire: ClassVar[tuple[str, ...]] = ("share",)

    def __init__(self, receiver: int, count: int) -> None:
        super().__init__(receiver)
        self.count = count


@mypyc_attr(allow_interpreted_subclasses=True)
class OnBehalf(Message):
    """The node ``origin`` wants to enter, whichever node sends this on."""

    wire: ClassVar[tuple[str, ...]] = ("node",)

    def __init__(self, receiver: int, origin: int) -> None:
        super().__init__(receiver)
        self.origin = origin


WaitingSite = tuple[int, int]
"""Its number, and the priority of its request."""


def line_up(queue: list[WaitingSite], waiting: WaitingSite) -> None:
    """Behind all that are as urgent, before all that are less."""
    place = len(queue)
    while place > 0 and queue[place - 1][1] < waiting[1]:
        place -= 1
    queue.insert(place, waiting)


def sites(kind: Callable[..., Actor], permits: bool = False, option: str = "") -> Make:
    """A node of this class at every place. The class takes the number of permits, too, or the
    value of an option, where that is said."""

    def make(network: Network, k: int, options: Options, out: list[Effect]) -> list[Actor]:
        more = [k] if permits else [options[option]] if option else []
        return [kind(me, out, network, *more) for me in range(network.size)]

    return make
