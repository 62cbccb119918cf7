"""The contract of a node: handlers in, effects out.

An :class:`Actor` is one participant. Its runner calls its handlers (`start`, `request`, `release`,
`receive`, `link_up`, `timer`); a handler runs to completion, never blocks, and speaks only by
appending effects to ``out``: a :class:`Message` to be carried to another node, an :class:`Enter`
that lets a client in, a :class:`Save` that writes to disk. "Wait until" in a paper is a state here.
An actor has no clock, no randomness, no I/O and no thread of its own.

The runner (simulator, checker, live adapter) gives it the list ``out``, calls one handler, and then
carries out what the list holds, in order.

Time, crashes and disks concern only actors that use them. A plain algorithm implements what its
paper has, and neither uses nor pays for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import ClassVar, Final, NamedTuple

from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.algorithms.variables import StatePart, parameters

NIL: Final = -1
"""The paper's *nil*: no node, no client."""

WAKE: Final = "wake"
"""The timer of all that may be due."""

Frozen = tuple[object, ...]
"""A node's or a message's state as a small hashable value."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Effect:
    """What a handler asks of the world."""


class Enter(Effect):
    """This client of the node now holds its permits.

    ``fence`` is the number of the grant, larger than that of every grant before it; 0
    where the algorithm's token does not count its grants. ``until``: the end of its lease on
    the node's own clock, unless it is renewed; 0 where there are no leases. ``permits``: how many
    the pool has in all, where that may change; else 0. ``slots``: which ones, where it matters.
    """

    def __init__(
        self,
        client: int,
        fence: int = 0,
        until: int = 0,
        permits: int = 0,
        slots: tuple[int, ...] = (),
    ) -> None:
        self.client = client
        self.fence = fence
        self.until = until
        self.permits = permits
        self.slots = slots


class Lost(Effect):
    """This client's lease has ended: it must have stopped by now."""

    def __init__(self, client: int, fence: int) -> None:
        self.client = client
        self.fence = fence


class Save(Effect):
    """Write this record to disk before any message behind this leaves. Only the latest counts: it
    is in what the actor's next life starts with."""

    def __init__(self, record: object) -> None:
        self.record = record


class Reductions(NamedTuple):
    """What the checker's reductions may do with the variables of a node, or the fields of a
    message. Without it they do nothing.

    ``names`` hold nodes' numbers, as names that may be exchanged; None: not said. ``heights`` hold
    heights (h1, h2, node) that are only ever compared. ``counts`` hold copies of one count that
    only grows: the largest may be added to, and a smaller one replaced by a larger. Nothing else
    depends on them but ranks. ``ranks``: which variables of a node hold ranks, and where in each
    row of such a variable; see :meth:`Observed.patience`.
    """

    names: tuple[str, ...] | None = None
    heights: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    ranks: dict[str, tuple[int, ...]] = {}


@mypyc_attr(allow_interpreted_subclasses=True)
class Message(Effect):
    """What one node says to another; each kind is a subclass.

    ``receiver`` is given by the writer of the message, ``sender`` is filled in by
    :meth:`Actor.send`. The remaining attributes are the message's own: what the constructor
    takes after the receiver.
    """

    kind: ClassVar[str] = "?"
    """The name of the class in capitals, if the class says nothing else."""
    fields: ClassVar[tuple[str, ...]] = ()
    """The message's own attributes, in the order in which the constructor takes them."""
    wire: ClassVar[tuple[object, ...]] = ()
    """What each field holds, where machines send the message to each other: a record, or a word of
    :data:`meshlock.live.pools.wire.MEANINGS`, which has the limits."""
    reductions: ClassVar[Reductions] = Reductions()

    contents: ClassVar[attrgetter[Frozen]]
    """Gets what :meth:`freeze` returns; ``attrgetter`` makes a tuple of two names or more only."""

    serial: int = 0
    """Set by the carrier of the message: its place in the line."""
    urgent: bool = True
    """Else it may wait a little, to go with another to the same receiver."""

    def __init_subclass__(cls) -> None:
        if "kind" not in vars(cls):
            cls.kind = cls.__name__.upper()
        cls.fields = parameters(cls)[1:]
        cls.contents = attrgetter("kind", "kind", *cls.fields)

    def __init__(self, receiver: int) -> None:
        self.sender = NIL
        self.receiver = receiver

    def tokens(self) -> int:
        """How many tokens this message carries: 0 or 1."""
        return 0

    def permits(self) -> int:
        """How many permits this message carries, free or on their way back."""
        return 0

    def lends(self) -> int:
        """How many permits it grants to a client of the receiver, while the token stays. Inside
        recovery only an open algorithm may."""
        return 0

    def ranks(self) -> tuple[str, ...]:
        """Which fields of this message hold ranks, see :class:`Reductions`."""
        return ()

    def freeze(self) -> Frozen:
        """Kind and fields, without sender and receiver."""
        return self.contents(self)[1:]


@mypyc_attr(allow_interpreted_subclasses=True)
class Observed(StatePart):
    """What observers may ask of a node: monitors, checker, page, status. Asking changes nothing."""

    reductions: ClassVar[Reductions] = Reductions()

    def tokens(self) -> int:
        """How many tokens are at this node: 0 or 1, and 0 where there is no token."""
        return 0

    def free_permits(self) -> int:
        """How many permits are here and not in use."""
        return 0

    def towards(self) -> int:
        """The neighbour through which the token is reached, as far as this node knows, or NIL."""
        return NIL

    def altitude(self) -> tuple[int, ...] | None:
        """How high this node is, where nodes have heights."""
        return None

    def waited(self, client: int, grants: int = 0) -> int:
        """How many grants this waiting client has seen, as far as known here, if ``grants`` were
        made in all: its age for :meth:`resume`. 0 where requests do not age."""
        return 0

    def known_priority(self) -> int | None:
        """The highest priority this node knows to be waiting, if it keeps priorities."""
        return None

    def patience(self) -> int:
        """What a rank has to do with counts: it is priority * patience - a count, and only
        ranks, and their quotients by the patience, are compared. 0: it has nothing."""
        return 0

    @property
    def variables(self) -> tuple[str, ...]:
        """What :meth:`freeze` returns, by name."""
        return self.declared().names


@mypyc_attr(allow_interpreted_subclasses=True)
class Actor(Observed):
    """One participant: its variables, its handlers, and the list for its effects."""

    def __init__(self, me: int, out: list[Effect]) -> None:
        self.me = me
        self.out = out

    # -- handlers ---------------------------------------------------------------

    def start(self, life: object = None) -> None:
        """A life begins. ``life`` says what an actor needs to know of it that may crash: what the
        disk kept of the lives before. Of plain algorithms only *restless* ones are started, once,
        before anything else, in the order of the nodes."""

    def request(self, client: int, want: int, priority: int) -> None:
        """A client of this node asks for ``want`` permits."""
        raise NotImplementedError

    def resume(self, client: int, want: int, priority: int, age: int) -> None:
        """A client asks that has waited for ``age`` grants already, at a node before this one.

        What that is worth is the algorithm's own business; to most it is a request like any.
        """
        self.request(client, want, priority)

    def release(self, client: int) -> None:
        """A client that was let in releases all its permits."""
        raise NotImplementedError

    def release_some(self, client: int, permits: int) -> None:
        """A client that was let in releases some of its permits, and keeps others. Only where a
        request may be for several."""
        raise NotImplementedError

    def withdraw(self, client: int) -> bool:
        """A waiting client gives up. False if its request cannot be withdrawn: then it will
        be let in, and must leave."""
        return False

    def change_priority(self, client: int, want: int, priority: int) -> bool:
        """A waiting client's request becomes more or less urgent, in one step: it never stops
        waiting, and keeps its age. False if the algorithm cannot do that, or the client does not
        wait here: then it will be let in as it is."""
        return False

    def receive(self, message: Message) -> None:
        """A message has arrived."""
        raise NotImplementedError

    def undelivered(self, message: Message) -> None:
        """A link failed while this message of ours was on it, and it came back.

        Called before ``link_down``, for messages that carry a token or permits, and
        only where the network returns them; all else that was on the link is lost.
        What is sent on must be a new message, not this object again.
        """

    def link_up(self, peer: int) -> None:
        """The link to ``peer`` has formed. Algorithms for fixed networks ignore it."""

    def link_down(self, peer: int) -> None:
        """The link to ``peer`` has failed. Algorithms for fixed networks ignore it."""

    def cannot_reach(self, nodes: set[int]) -> None:
        """These are the nodes that no message reaches now, as far as the network notices."""

    # -- time, for nodes that have timers ------------------------------------------

    def tell_time(self, now: int) -> None:
        """The node's own clock shows this, in any unit. Said before any other handler is called."""

    def timer(self, name: str, chance: float = 0.0) -> None:
        """It is time for that; ``chance`` is drawn from 0 to 1. A runner calls WAKE when
        :meth:`timer_at` says so. The checker calls each of the others at any moment: early or late,
        they are to be safe."""

    def timer_at(self) -> int:
        """By the node's clock, when WAKE is due at the latest. It is asked for after every handler,
        and is no effect: it changes with nearly every handler, and costs a few comparisons."""
        raise NotImplementedError

    # -- effects ----------------------------------------------------------------

    def send(self, message: Message) -> None:
        message.sender = self.me
        self.out.append(message)

    def enter(self, client: int, fence: int = 0) -> None:
        self.out.append(Enter(client, fence))


@mypyc_attr(allow_interpreted_subclasses=True)
class OpenActor(Actor):
    """A node of an *open* algorithm: within an epoch of recovery such nodes may come and go."""

    def holder_is(self, node: int, hop: int) -> None:
        """The token has been heard of: its move number ``hop`` was to ``node``."""
        raise NotImplementedError

    def forget(self, node: int) -> bool:
        """That node has crashed or cannot be reached: what it asked for, it will ask for again.
        True if it had asked for something."""
        raise NotImplementedError

    def number_of(self, node: int) -> int:
        """Of the latest request of that node that is known here; NIL if none is."""
        raise NotImplementedError

    def ask_again(self) -> None:
        """What this node asked for may be lost with a node that crashed."""
        raise NotImplementedError

    def unacknowledged(self, grants: int) -> None:
        """Of the grants that this node lent, this number is not known to have arrived."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class ChoosingActor(Actor):
    """A node that leaves something to chance: the outside chooses before any handler runs. The
    simulator draws, the checker tries everything."""

    choice_names: ClassVar[tuple[str, ...]] = ()
    """What the settings of :meth:`choices` are called, in their order."""

    def choices(self) -> int:
        """How many settings there are to choose among; 1 if this node leaves nothing open."""
        raise NotImplementedError

    def choose(self, choice: int) -> None:
        """The outside sets choice number ``choice`` (below :meth:`choices`)."""
        raise NotImplementedError


def choices_of(node: Actor) -> int:
    """How many settings the outside may choose among at this node; 1 for most algorithms."""
    return node.choices() if isinstance(node, ChoosingActor) else 1


@mypyc_attr(allow_interpreted_subclasses=True)
class Network:
    """What an algorithm may know of the network when its nodes are made.

    Nodes are numbered 0 to ``size`` - 1. Node 0 is the root: it holds the first token,
    unless the tree of fathers is given and has another root. ``ordered``: who has neighbouring
    numbers stands together. Recovery numbers the nodes of each epoch anew, so there they do not.
    """

    ordered: ClassVar[bool] = True

    def __init__(self, size: int) -> None:
        self.size = size

    def neighbours(self, node: int) -> list[int]:
        """The nodes linked to ``node``, in ascending order."""
        raise NotImplementedError

    def linked(self, one: int, other: int) -> bool:
        """Is there a link between these two nodes?"""
        raise NotImplementedError

    def father(self, node: int) -> int:
        """The next node on a shortest path from ``node`` to node 0, or in the tree that is
        given; NIL for the root."""
        raise NotImplementedError


class Assumptions(NamedTuple):
    """What an algorithm assumes of the network: without any, that links stay, in any order."""

    changing_links: bool = False  # made for links that come and go
    fifo: bool = False  # links keep the order
    complete_graph: bool = False  # all nodes are linked to all others
    routed: bool = False  # sends to nodes it has no link to
    any_tree: bool = False  # starts from the network's tree of fathers, whatever its root


class Serves(NamedTuple):
    """How an algorithm serves its clients."""

    priorities: bool = False
    many_clients: bool = False  # several requests of one node at once
    token: bool = True  # one token, so that "one token" and "conservation" mean something
    restless: bool = False  # messages go on even when nothing is asked for
    kinds: bool = False  # a request may be for several kinds of permits


Options = dict[str, str]
Choices = dict[str, tuple[str, ...]]
"""Options, and the values of each, the default first."""
Make = Callable[[Network, int, Options, list[Effect]], list[Actor]]
"""Network, permits, options, out: one node per place."""
Join = Callable[[int, bool, int, Options, list[Effect]], Actor]
"""Number, founder, permits, options, out: one node that has no links yet. Any number may come; the
founder's node has the token and all permits."""
Late = Callable[[int, int, int, int, int, Options, list[Effect]], OpenActor]
"""Number, holder, hop, request, permits, options, out: one node of an open algorithm. The token's
move number ``hop`` was to that holder, or is there from the beginning if it is -1."""


class Newcomers(NamedTuple):
    """How nodes come to a pool that has others, as live nodes do."""

    join: Join | None = None
    late: Late | None = None


class Algorithm(NamedTuple):
    """A registered algorithm: what it solves, what it assumes, how its nodes are made."""

    name: str
    title: str
    source: str
    problem: str  # "mutex", "k" or "h-of-k"
    make: Make
    kinds: tuple[type[Message], ...]
    assumes: Assumptions = Assumptions()
    serves: Serves = Serves()
    newcomers: Newcomers = Newcomers()
    # properties that hold in every single state: by name, or as functions of properties/own.py
    structure: tuple[str | Callable[..., object], ...] = ()
    options: Choices = {}

    def messages(self) -> list[str]:
        return [kind.kind for kind in self.kinds]

    def facts(self) -> dict[str, object]:
        """As lists and studies name what it solves and assumes."""
        return {
            "problem": self.problem,
            "priorities": self.serves.priorities,
            "changing_links": self.assumes.changing_links,
            "needs_fifo": self.assumes.fifo,
            "needs_complete_graph": self.assumes.complete_graph,
            "routed": self.assumes.routed,
            "many_clients": self.serves.many_clients,
            "token": self.serves.token,
            "restless": self.serves.restless,
            "kinds": self.serves.kinds,
        }
