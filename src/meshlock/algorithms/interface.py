"""What an algorithm is: handlers in, effects out.

A :class:`Node` is one participant. The outside calls its handlers (`request`,
`release`, `receive`, `link_up`, `link_down`); a handler runs to completion, never
blocks, and speaks only by appending effects to ``out``: a :class:`Message` to be
carried to another node, or an :class:`Enter` that lets a client in. "Wait until" in a
paper is a state here.

Whoever runs the node (simulator, checker, live adapter) gives it the list ``out``,
calls one handler, and then carries out what the list holds, in order.

Time, crashes and disks concern only nodes whose permits are under leases, which have a layer around
them (:mod:`meshlock.algorithms.recovery.layer`): plain algorithms neither use nor pay for them.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import ClassVar, Final

from meshlock.algorithms.recovery.records import Config, Epoch, Seal
from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.algorithms.variables import Variables, parameters

NIL: Final = -1
"""The paper's *nil*: no node, no client."""

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


class Keep(Effect):
    """Write both to disk before any message behind this leaves; the latest goes to ``restart``."""

    def __init__(self, promised: Epoch, config: Config) -> None:
        self.promised = promised
        self.config = config


class Conflict(Effect):
    """That node has a conflicting configuration: the two ignore each other until they agree."""

    def __init__(self, node: int, config: Config) -> None:
        self.node = node
        self.config = config


@mypyc_attr(allow_interpreted_subclasses=True)
class Message(Effect):
    """What one node says to another; each kind is a subclass.

    ``receiver`` is given by whoever writes the message, ``sender`` is filled in by
    :meth:`Node.send`. The remaining attributes are the message's own: what the constructor
    takes after the receiver.
    """

    kind: ClassVar[str] = "?"
    """The name of the class in capitals, if the class says nothing else."""
    fields: ClassVar[tuple[str, ...]] = ()
    """The message's own attributes, in the order in which the constructor takes them."""
    names: ClassVar[tuple[str, ...] | None] = None
    """Which fields hold nodes' numbers, as names that may be exchanged; None: not said."""
    heights: ClassVar[tuple[str, ...]] = ()
    """Which fields hold heights (h1, h2, node) that are only ever compared."""
    counts: ClassVar[tuple[str, ...]] = ()
    """Which fields hold copies of a count that only grows, see :attr:`Node.counts`."""

    contents: ClassVar[attrgetter[Frozen]]
    """Gets what :meth:`freeze` returns; the kind twice, for of one name it would make no tuple."""

    serial: int = 0
    """Set by whoever carries the message: its place in the line."""
    urgent: bool = True
    """Else it may wait a little, to go with another to the same receiver."""
    seal: Seal | None = None
    """What recovery adds to a message of the algorithm inside."""

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
        """Which fields of this message hold ranks, see :attr:`Node.ranks`."""
        return ()

    def freeze(self) -> Frozen:
        """Kind and fields, without sender and receiver."""
        return self.contents(self)[1:]


@mypyc_attr(allow_interpreted_subclasses=True)
class TokenMessage(Message):
    """The token on its way, and with it the only permit."""

    def tokens(self) -> int:
        return 1

    def permits(self) -> int:
        return 1


VARIABLES: Final[dict[type, Variables]] = {}
"""Of each kind of node that has been asked for its state."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Node:
    """One participant: its variables, its handlers, and the list for its effects.

    Its state is what its ``__init__`` assigns, but for what is named in ``no_state``.
    """

    no_state: ClassVar[tuple[str, ...]] = ()
    """What is no variable: what is fixed at its birth, and what can be found from the others."""
    names: ClassVar[tuple[str, ...] | None] = None
    """Which variables hold nodes' numbers, as names that may be exchanged; None: not said."""
    heights: ClassVar[tuple[str, ...]] = ()
    """Which variables hold heights (h1, h2, node) that are only ever compared."""
    counts: ClassVar[tuple[str, ...]] = ()
    """Which variables hold copies of one count that only grows: the largest may be added to,
    and a smaller one replaced by a larger. Nothing else depends on them but ranks."""
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {}
    """Which variables hold ranks, and where in each row of such a variable; see patience."""
    choice_names: ClassVar[tuple[str, ...]] = ()
    """What the settings of :meth:`choices` are called, in their order."""

    def __init__(self, me: int, out: list[Effect]) -> None:
        self.me = me
        self.out = out

    # -- handlers ---------------------------------------------------------------

    def start(self) -> None:
        """Called once, before anything else, at a *restless* algorithm's nodes in their order."""

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
        """A client that was let in releases so many of its permits, and keeps some. Only where a
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

    # -- of an *open* algorithm, whose nodes may come and go ----------------------

    def holder_is(self, node: int, hop: int) -> None:
        """The token has been heard of: its move number ``hop`` was to ``node``."""

    def forget(self, node: int) -> bool:
        """That node has crashed or cannot be reached: what it asked for, it will ask for again.
        True if it had asked for something."""
        return False

    def number_of(self, node: int) -> int:
        """Of the latest request of that node that is known here; NIL if none is."""
        return NIL

    def ask_again(self) -> None:
        """What this node asked for may be lost with a node that crashed."""

    def unacknowledged(self, grants: int) -> None:
        """Of the grants that this node lent, so many are not known to have arrived."""

    # -- influences from outside the algorithm ----------------------------------

    def choices(self) -> int:
        """How many settings the outside may choose among before any handler runs.

        The simulator draws one, the checker tries them all. Most algorithms leave
        nothing to choose.
        """
        return 1

    def choose(self, choice: int) -> None:
        """The outside sets choice number ``choice`` (below :meth:`choices`)."""

    # -- what observers may ask -------------------------------------------------

    def patience(self) -> int:
        """What a rank has to do with counts: it is priority * patience - a count, and only
        ranks, and their quotients by the patience, are compared. 0: it has nothing."""
        return 0

    def tokens(self) -> int:
        """How many tokens are at this node: 0 or 1, and 0 where there is no token."""
        return 0

    def free_permits(self) -> int:
        """How many permits are here and in nobody's use."""
        return 0

    def towards(self) -> int:
        """The neighbour through which the token is reached, as far as this node knows, or NIL."""
        return NIL

    def altitude(self) -> tuple[int, ...] | None:
        """How high this node is, where nodes have heights."""
        return None

    def waited(self, client: int, grants: int = 0) -> int:
        """How many grants this waiting client has seen, as far as known here, if at least so many
        were made in all: its age for :meth:`resume`. 0 where requests do not age."""
        return 0

    def known_priority(self) -> int | None:
        """The highest priority this node knows to be waiting, if it keeps priorities."""
        return None

    @property
    def variables(self) -> tuple[str, ...]:
        """What :meth:`freeze` returns, by name."""
        return self.declared().names

    def freeze(self) -> Frozen:
        """The node's whole state as a hashable value."""
        return self.declared().freeze(self)

    def thaw(self, state: Frozen) -> None:
        """Become the node that :meth:`freeze` described; what is no state may need an override."""
        self.declared().thaw(self, state)

    def declared(self) -> Variables:
        kind = type(self)
        known = VARIABLES.get(kind)
        if known is None:
            known = VARIABLES[kind] = Variables(self, ("me", "out", *self.no_state))
        return known

    # -- effects ----------------------------------------------------------------

    def send(self, message: Message) -> None:
        message.sender = self.me
        self.out.append(message)

    def enter(self, client: int, fence: int = 0) -> None:
        self.out.append(Enter(client, fence))


@mypyc_attr(allow_interpreted_subclasses=True)
class Network:
    """What an algorithm may know of the network when its nodes are made.

    Nodes are numbered 0 to ``size`` - 1. Node 0 is the root: it holds the first token,
    unless the tree of fathers is given and has another root.
    """

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


class Algorithm:
    """A registered algorithm: how to make its nodes, what it solves, what it assumes."""

    def __init__(
        self,
        name: str,
        title: str,
        source: str,
        problem: str,
        make: Callable[[Network, int, dict[str, str], list[Effect]], list[Node]],
        kinds: tuple[type[Message], ...],
        *,
        priorities: bool = False,
        changing_links: bool = False,
        needs_fifo: bool = False,
        needs_complete_graph: bool = False,
        routed: bool = False,
        token: bool = True,
        many_clients: bool = False,
        restless: bool = False,
        structure: tuple[str, ...] = (),
        any_tree: bool = False,
        options: dict[str, tuple[str, ...]] | None = None,
        join: Callable[[int, bool, int, dict[str, str], list[Effect]], Node] | None = None,
        late: Callable[[int, int, int, int, int, dict[str, str], list[Effect]], Node] | None = None,
        layer: Callable[..., Node] | None = None,
    ) -> None:
        self.name = name
        self.title = title
        self.source = source
        self.problem = problem  # "mutex", "k" or "h-of-k"
        self.make = make  # network, permits, options, out -> one node per place
        self.kinds = kinds
        self.priorities = priorities
        self.changing_links = changing_links
        self.needs_fifo = needs_fifo
        self.needs_complete_graph = needs_complete_graph
        self.routed = routed  # sends to nodes it has no link to
        self.token = token  # one token, so that "one token" and "conservation" mean something
        self.many_clients = many_clients  # several requests of one node at once
        self.restless = restless  # messages go on even when nobody wants anything
        self.structure = structure  # names of properties that hold in every single state
        self.any_tree = any_tree  # starts from the network's tree of fathers, whatever its root
        # number, founder, permits, options, out -> one node that has no links yet: how live nodes
        # come to a pool. Any number may come; the founder's node holds the token and all permits.
        self.join = join
        # number, holder, hop, permits, options, out -> one node, where the token's move number hop
        # was to that holder, or is there from the beginning if it is -1. In an epoch of recovery
        # such nodes may come and go at any time.
        self.late = late
        self.options = options if options is not None else {}  # name: values, the default first
        self.layer = layer  # of a mutant of recovery: what is around nodes of pools with members

    def messages(self) -> list[str]:
        return [kind.kind for kind in self.kinds]
