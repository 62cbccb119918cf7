"""Live nodes with one rule undone: whoever judges live nodes must notice each.

Those of recovery are the mutants of the checker, in the real pool; the others are in what carries
the algorithm: the pool's adapter, its disk, its clock, and the links.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

from meshlock.algorithms.interface import Effect, Keep, Lost
from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.recovery import layer, pace, quorum, reports
from meshlock.algorithms.recovery.messages import Renew
from meshlock.live.links.frames import Carry
from meshlock.live.links.mesh import Mesh
from meshlock.live.links.session import Session
from meshlock.live.pools import members
from meshlock.live.pools.disk import Disk
from meshlock.live.pools.members import Members
from meshlock.live.pools.pool import Pool
from meshlock.live.pools.promises import Promised, Promises


class Sabotage(NamedTuple):
    name: str
    what: str
    patches: list[tuple[Any, str, Any]]


@contextmanager
def sabotaged(sabotage: Sabotage) -> Iterator[None]:
    with ExitStack() as stack:
        for place, name, instead in sabotage.patches:
            stack.enter_context(mock.patch.object(place, name, instead))
        yield


# -- the pool's adapter --------------------------------------------------------------------------


def revoke_silently(pool: Pool, number: int) -> None:
    waiter = pool.clients.pop(number)
    if waiter.grant is not None:
        waiter.grant.held = False


def until_and_more(self: Members, client: int) -> float | None:
    until = honest_until(self, client)
    return None if until is None else until + self.configuration.lease / 4e6


def wait_for_no_disk(self: Disk, effects: list[Effect]) -> list[Effect]:
    """What stands behind a promise leaves before it is written."""
    honest_pass_on(self, [effect for effect in effects if isinstance(effect, Keep)])
    return [effect for effect in effects if not isinstance(effect, Keep)]


def write_the_first_only(self: Promises, promised: Promised) -> bool:
    """The disk keeps what is old."""
    path = self.folder / f"{promised.pool.pool}.promised"
    return True if path.exists() else honest_write(self, promised)


def write_what_fails(self: Promises, promised: Promised) -> bool:
    """A write that fails is not noticed."""
    honest_write(self, promised)
    return True


def deliver_without_age(self: Pool, sender: str, frame: Any, shape: Any) -> None:
    with mock.patch.object(Mesh, "age", lambda mesh, stamp: 0):
        honest_deliver(self, sender, frame, shape)


def keep_after_release(self: Pool, number: int) -> None:
    """The clients' table is cleaned, and the algorithm is not told."""
    del self.clients[number]


def withdraw_nothing(self: Pool, waiter: Any) -> None:
    """A client that gives up stays in the queue, and is let in without anybody being there."""
    self.clients.pop(waiter.number, None)


def own_clock(self: Members) -> None:
    """The clock of leases stands still between messages and timers of other pools."""
    self.clock = self.mesh.clock() // 10**9 * 10**9
    self.node.now = self.clock // 1000


honest_until = Members.until
honest_write = Promises.write
honest_pass_on = Disk.pass_on
honest_deliver = Pool.deliver

# -- links ---------------------------------------------------------------------------------------


def take_repeats(self: Session, frame: Carry) -> bool:
    self.acknowledge(frame.acknowledged)
    self.received = max(self.received, frame.number)
    self.custody_received = max(self.custody_received, frame.custody)
    return True


def begin_without_custody(self: Session, generation: int, kept: int) -> None:
    self.custody.clear()
    self.custody_bytes = 0
    honest_begin(self, generation, kept)


honest_begin = Session.begin

# -- recovery, beside the mutants ----------------------------------------------------------------


def fewer(names: tuple[int, ...]) -> int:
    return max(1, len(names) // 2)


class AnswersForOldEpochs(layer.Layer):
    def receive_renew(self, renew: Renew) -> None:
        promised, self.promised = self.promised, min(self.promised, renew.epoch)
        super().receive_renew(renew)
        self.promised = max(promised, self.promised)


class NeverTells(layer.Layer):
    """Leases run out, and nobody hears of it."""

    def expire(self) -> None:
        before = len(self.out)
        super().expire()
        self.out[before:] = [one for one in self.out[before:] if not isinstance(one, Lost)]


ADAPTERS = [
    Sabotage(
        "tells-no-client",
        "a client is not told that its lease is lost",
        [(Pool, "revoke", revoke_silently)],
    ),
    Sabotage(
        "layer-tells-nobody", "leases run out without a word", [(members, "Layer", NeverTells)]
    ),
    Sabotage(
        "deadline-too-late",
        "clients are told a deadline a quarter of a lease too late",
        [(Members, "until", until_and_more)],
    ),
    Sabotage(
        "waits-for-no-disk",
        "what stands behind a promise leaves before it is on disk",
        [(Disk, "pass_on", wait_for_no_disk)],
    ),
    Sabotage(
        "remembers-the-first",
        "only the first promise is written",
        [(Promises, "write", write_the_first_only)],
    ),
    Sabotage(
        "full-disk-is-fine",
        "a promise that the disk did not take is sent all the same",
        [(Promises, "write", write_what_fails)],
    ),
    Sabotage(
        "ageless-messages",
        "the way of a token is not counted",
        [(Pool, "deliver", deliver_without_age)],
    ),
    Sabotage(
        "releases-nothing",
        "what a client releases stays out",
        [(Pool, "leave", keep_after_release)],
    ),
    Sabotage(
        "forgets-who-gave-up",
        "a client that gave up is let in, and nobody releases",
        [(Pool, "withdraw", withdraw_nothing)],
    ),
    Sabotage(
        "coarse-clock", "leases are counted in whole seconds", [(Members, "tell_time", own_clock)]
    ),
    Sabotage("no-drift", "clocks are taken to be right", [(members, "DRIFT", 0.0)]),
    Sabotage("takes-repeats", "a link takes messages again", [(Session, "take", take_repeats)]),
    Sabotage(
        "loses-custody",
        "what was in custody is not sent on the next link",
        [(Session, "begin", begin_without_custody)],
    ),
    Sabotage(
        "quorum-too-small",
        "two of five are a quorum",
        [(place, "majority", fewer) for place in (pace, quorum, reports)],
    ),
    Sabotage(
        "answers-for-old-epochs",
        "a member answers for an epoch below its promise",
        [(members, "Layer", AnswersForOldEpochs)],
    ),
]


RECOVERY = [
    Sabotage(mutant.name, mutant.mistake, [(members, "Layer", mutant.algorithm.layer)])
    for mutant in MUTANTS.values()
    if mutant.algorithm.layer is not None
]
SABOTAGES = {sabotage.name: sabotage for sabotage in ADAPTERS + RECOVERY}
