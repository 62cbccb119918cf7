"""What must be true where permits are good only under a lease.

The simulator reports as it goes and ``meshlock audit`` reports from a trace, as with
:mod:`.monitor`, whose other properties are about networks in which nothing crashes.

- **safety**: with each grant at most k permits are in use *under valid leases*; k is that of the
  epoch of the grant. A grant whose node has crashed is in use until its lease ends, for what the
  client started may still run. Where k never changes, at most k are ever in use; when k falls, what
  was granted before may go on.
- **leases**: no client is inside after the end of its lease.
- **slots**: no two grants under valid leases have a slot in common, where grants have slots.
- **order**: where nothing has failed for as long as recovery may take, no request with a way to
  the token is passed by a later and less urgent one; see :mod:`.waits`. A step that makes one
  request more urgent lets no other one in.
- **fences**: every grant has a higher fence than all grants made before it. A grant that is sent to
  another node is made when it is sent; its client may enter after those of later grants.
- **one-token**: every epoch has one token; it is made once, later epochs are higher, and
  no node makes another. That a token is lost is no violation here: it is why there are epochs.
- **conservation**: what is free at the token and what its ledger says is lent are k together,
  unless more than k was lent when k fell: then nothing is free. k is that of the epoch before,
  unless another number was asked for.
- **served**: a client that can reach a majority for long enough is served; see :mod:`.paths`.
"""

from __future__ import annotations

from meshlock.algorithms.amounts import first_of, fits, positive
from meshlock.properties import sentences
from meshlock.properties.by_kind import overuse
from meshlock.properties.monitor import Monitor
from meshlock.properties.promises import PromisedOrder

NAMES = ("safety", "leases", "slots", "order", "fences", "one-token", "conservation", "served")

Epoch = tuple[int, int, int]
Fence = tuple[Epoch, int]

NO_FENCE: Fence = ((0, -1, 0), 0)
"""Below all others."""


def twice(slots: list[int]) -> list[int]:
    """Those that occur more than once."""
    if len(set(slots)) == len(slots):
        return []
    return sorted({slot for slot in slots if slots.count(slot) > 1})


def numbered(fence: int) -> Fence:
    """A fence in one number, to be compared with others of its kind."""
    return ((fence, 0, 0), 0)


class HeldGrant:
    """A grant, for as long as it may be in use."""

    def __init__(self, node: int, want: int, until: float, slots: tuple[int, ...]) -> None:
        self.node = node
        self.want = want
        self.until = until
        self.slots = slots
        self.orphan = False  # its node has crashed


class LeaseMonitor(Monitor):
    """``slack``: how much too late a renewal may be told. ``orderly``: is order judged?"""

    def __init__(self, permits: int, slack: float = 0.0, orderly: bool = False) -> None:
        super().__init__(permits, PromisedOrder(ordered=False, balanced=False, ageing=0.0))
        self.slack = slack
        self.orderly = orderly
        self.raised_client: int | None = None  # by the step at hand
        self.given: dict[int, HeldGrant] = {}  # by client
        self.fence = NO_FENCE
        self.lent: set[Fence] = set()  # of grants on their way to the nodes of their clients
        self.epoch: Epoch = (0, -1, 0)  # the highest that has a token
        self.epochs = 0
        self.resizes: set[int] = set()  # other numbers of permits that were asked for

    # -- grants ---------------------------------------------------------------------

    def in_use(self, time: float) -> int:
        """Permits under leases that are valid at this time."""
        used = 0
        over: list[int] = []
        for client, held in self.given.items():
            if held.until > time:
                used += held.want
            elif held.orphan:
                over.append(client)
        for client in over:
            del self.given[client]
        return used

    def granted(
        self,
        time: float,
        node: int,
        client: int,
        want: int,
        until: float,
        fence: Fence,
        permits: int,
        slots: tuple[int, ...] = (),
    ) -> None:
        """``permits``: k of its epoch."""
        self.grants += 1
        if self.raised_client is not None and client != self.raised_client:
            self.blame_raise(time, node)
        self.given[client] = HeldGrant(node, want, until, slots)
        used = self.in_use(time)
        if not fits(used, permits):
            self.report("safety", time, overuse(node, want, used, permits))
        if len(slots) > 0:
            living = [held.slots for held in self.given.values() if held.until > time]
            for slot in twice([slot for row in living for slot in row]):
                self.report("slots", time, sentences.shared_slot(slot))
        if fence in self.lent:
            self.lent.remove(fence)
        else:
            self.makes(time, node, fence)

    def makes(self, time: float, node: int, fence: Fence) -> None:
        """That node makes a grant."""
        if fence <= self.fence:
            text = f"node {node} enters with fence {fence}, which is not above {self.fence}"
            self.report("fences", time, text)
        else:
            self.fence = fence

    def raises(self, client: int) -> None:
        """The step at hand makes this one more urgent, and lets no other one in."""
        if self.orderly:
            self.raised_client = client

    def blame_raise(self, time: float, node: int) -> None:
        self.report("order", time, sentences.let_in_by_a_raise(node))

    def moved(self) -> None:
        super().moved()
        self.raised_client = None

    def lends_under(self, time: float, node: int, fence: Fence) -> None:
        """That node makes a grant to a client of another one."""
        if self.raised_client is not None:
            self.blame_raise(time, node)
        self.makes(time, node, fence)
        self.lent.add(fence)

    def renewed(self, time: float, client: int, until: float) -> None:
        held = self.given.get(client)
        if held is None:
            return
        if held.until + self.slack <= time or held.orphan:
            text = f"is given more time although its lease ended at {held.until:g}"
            self.report("leases", time, f"client {client} of node {held.node} {text}")
        held.until = until

    def gives_back(self, time: float, client: int) -> None:
        """The client leaves, or has stopped because its lease is over."""
        held = self.given.get(client)
        if held is None or held.orphan:
            return
        if held.until + self.slack < time:
            text = f"is still inside although its lease ended at {held.until:g}"
            self.report("leases", time, f"client {client} of node {held.node} {text}")
        del self.given[client]

    def gives_some(self, client: int, permits: int) -> None:
        """The client keeps the rest, and the first of its slots."""
        held = self.given.get(client)
        if held is not None:
            held.want -= permits
            held.slots = first_of(held.slots, held.want)

    def crashed(self, node: int) -> None:
        for held in self.given.values():
            if held.node == node:
                held.orphan = True

    # -- the token --------------------------------------------------------------------

    def recovered(self, time: float, node: int, epoch: Epoch, permits: int) -> None:
        """The token of a new epoch is made, for this number of permits."""
        if epoch <= self.epoch:
            text = (
                f"node {node} makes the token of epoch {epoch}, but there was one of {self.epoch}"
            )
            self.report("one-token", time, text)
        else:
            self.epoch = epoch
            self.epochs += 1
            if permits != self.permits and permits not in self.resizes:
                text = f"{permits} permits, but there were {self.permits}"
                self.report("conservation", time, f"the token that node {node} makes is for {text}")
            self.permits = permits

    def keeps(self, time: float, node: int, free: int, lent: int) -> None:
        """The token of the highest epoch is here, with its free permits and those in its ledger."""
        if free != positive(self.permits - lent):
            text = f"{free} free and {lent} lent, but there are {self.permits}"
            self.report("conservation", time, f"the token at node {node} has {text}")

    def made(self, time: float, node: int, tokens: int) -> None:
        """After a step: tokens that were there, came or were made, less those there and sent."""
        if tokens < 0:
            self.report("one-token", time, sentences.tokens(node, tokens))

    # -- the end ------------------------------------------------------------------------

    def ends_leased(self, time: float, with_path: int) -> None:
        if with_path > 0:
            text = "waited although a quorum was reachable for long enough"
            self.report("served", time, f"{sentences.counted(with_path, 'request')} {text}")
