"""Between the algorithm and the world: calls its handlers and carries out their effects.

The algorithm's node is the same object that is simulated and checked, and in a pool with members
so is the layer of recovery around it. Its handlers are called one at a time; then messages leave
with the guarantee that they need, clients get their grants or lose them, promises go to the disk.
A message becomes bytes once (:class:`Shape`), and is checked before the algorithm receives it.

Every message passes here twice, so this file is compiled where there is a compiler; what users
call, and what is rare, is in :mod:`.pool`. It decides nothing about who is served, or which pool
this is: :mod:`.participation` has it run a node.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from operator import attrgetter
from random import randrange
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec

from meshlock.algorithms.actor import (
    Actor,
    Algorithm,
    ChoosingActor,
    Effect,
    Enter,
    Lost,
    Message,
    choices_of,
)
from meshlock.algorithms.clients import NOBODY, OneAtATime
from meshlock.algorithms.recovery.messages import (
    KINDS,
    LINK,
    RELIABLE,
    Conflict,
    Inner,
    Voteless,
    carrier,
    content,
)
from meshlock.algorithms.recovery.records import new
from meshlock.algorithms.steps import step, urgency
from meshlock.live.links.frames import UNREADABLE, BadFrame, Carry, Content, RoutedFrame, encode
from meshlock.live.links.mesh import DRIFT, Mesh
from meshlock.live.links.session import serial
from meshlock.live.machine import clock, limits
from meshlock.live.pools.grants import Grant
from meshlock.live.pools.members import LayerRunner
from meshlock.live.pools.pool_configuration import PoolConfiguration
from meshlock.live.pools.waiting import Rises, Waiter
from meshlock.live.pools.wire import SEAL, row, types_of

if TYPE_CHECKING:
    from meshlock.live.pools.recording import Recording

NOTHING: dict[str, Any] = {}

READ_WHEN_STOPPED = Voteless.kind
"""By this a node knows that its pool has no quorum, and may end for another."""

BOUNDS: Final = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Upper bounds of the waiting times that are counted together, in seconds."""

TOKEN = "TOKEN"  # the kind of message that carries the token, in every algorithm that has one


class Measures:
    """What a pool has done on this node, in numbers."""

    def __init__(self) -> None:
        self.entries = 0
        self.lost = 0  # grants whose lease ran out
        self.met = 0  # deadlines ...
        self.missed = 0  # ... by requests that were granted too late, or gave up after it
        self.sent: dict[str, int] = {}  # kind: messages
        self.received = 0
        self.waited = 0.0  # by all together, in seconds
        self.waits = [0] * (len(BOUNDS) + 1)
        self.token_seen: float | None = None  # when it last left, if it was ever here

    def enters(self, waited: float) -> None:
        self.entries += 1
        self.waited += waited
        self.waits[bisect_left(BOUNDS, waited)] += 1

    def judges(self, met: bool) -> None:
        """Of a request with a deadline."""
        self.met += met
        self.missed += not met

    def sends(self, kind: str) -> None:
        self.sent[kind] = self.sent.get(kind, 0) + 1
        if kind == TOKEN:
            self.token_seen = monotonic()


sealing = attrgetter("epoch", "boot", "state", "left", "returned", "lent", "proofs")
"""Gets what recovery adds to a message, as :data:`.wire.SEAL` has it."""


class Shape:
    """The fields of one kind of message; ``sealed`` where recovery has added to it."""

    def __init__(self, kind: type[Message], sealed: bool) -> None:
        self.kind: Callable[..., Message] = kind
        self.name = kind.kind
        self.sealed = sealed
        fields = [*([SEAL] if sealed else []), *types_of(kind)]
        self.decode: Callable[[bytes], tuple[Any, ...]] = msgspec.msgpack.Decoder(
            row(*fields)
        ).decode
        self.contents = kind.contents  # the kind, twice, and the fields

    def pack(self, message: Message) -> bytes:
        if not isinstance(message, Inner):
            return encode(self.contents(message)[2:])
        return encode((sealing(message), *self.contents(message.message)[2:]))

    def message(self, receiver: int, payload: bytes) -> Message:
        try:
            fields = self.decode(payload)
        except UNREADABLE as error:
            raise BadFrame(f"a {self.name} with wrong fields: {error}") from None
        if not self.sealed:
            return self.kind(receiver, *fields)
        epoch, boot, state, left, returned, lent, proofs = fields[0]
        message = self.kind(receiver, *fields[1:])
        inner = Inner(receiver, epoch, boot, message, state, left, returned, lent)
        inner.proofs = proofs
        return inner


def shapes(algorithm: Algorithm, members: bool) -> dict[str, Shape]:
    """Of all messages that nodes of such a pool send."""
    found = {kind.kind: Shape(kind, sealed=members) for kind in algorithm.kinds}
    if members:
        found |= {kind.kind: Shape(kind, sealed=False) for kind in KINDS}
    return found


class Adapter:
    def __init__(self, name: str, mesh: Mesh, recording: Recording | None) -> None:
        self.name = name
        self.me = mesh.name
        self.mesh = mesh
        self.recording = recording
        self.configuration: PoolConfiguration | None = None
        self.identity = 0
        self.near: set[str] = set()  # peers in this pool, with a link
        self.leaving: set[str] = set()  # of these: who is about to
        self.receive_control: Callable[[str, Carry | RoutedFrame], None]
        """Receives what nodes say to each other, and no algorithm."""
        self.conflicts: Callable[[str, str], None]  # receives which node does, and a sentence
        self.resized: Callable[[], None]  # there may be other permits than before
        self.is_used: Callable[[], None]  # the first client here has entered

        self.out: list[Effect] = []
        self.core: Actor | None = None
        self.members: LayerRunner | None = None  # None: a pool without recovery
        self.algorithm: Algorithm | None = None
        self.shapes: dict[str, Shape] = {}
        self.chooses = False  # does its node leave anything to choose? With members, see there
        self.reliable = False  # may any two nodes write to each other, whatever links there are?
        self.names: dict[int, str] = {}  # nodes by number ...
        self.numbers: dict[str, int] = {}  # ... and by name

        self.step = 1  # grants that a step of priority is worth
        self.clients: dict[int, Waiter] = {}
        self.last_client = 0
        self.turns: OneAtATime | None = None  # of clients, if the algorithm takes one at a time
        self.rises = Rises(mesh.failures, self.rerank)
        self.returning: list[int] = []  # granted to nobody
        self.again: list[Waiter] = []  # granted too late to be told
        self.released: list[int] = []  # by clients, and not yet by the algorithm
        self.measures = Measures()
        self.stopped = False  # another pool of this name goes on in its place
        self.heard = False  # of others, since a client here had the loop read what they say

    def run(self, configuration: PoolConfiguration, algorithm: Algorithm, core: Actor) -> None:
        """This is the node from now on: all that depends on which pool it is begins anew."""
        members = self.members is not None
        self.identity = configuration.identity
        self.algorithm, self.core = algorithm, core
        self.step = step(configuration.options)
        self.shapes = shapes(algorithm, members)
        self.reliable = not algorithm.assumes.changing_links
        one_at_a_time = not members and not algorithm.serves.many_clients
        self.turns = OneAtATime(self.step) if one_at_a_time else None
        self.chooses = choices_of(core) > 1
        if self.recording is not None:
            self.recording.begin(self, configuration, algorithm, core)
        if algorithm.serves.restless:
            core.start()
            self.carry_out("start", NOTHING)
        elif members:
            self.carry_out("timer", NOTHING)

    # -- clients and the algorithm -----------------------------------------------------

    def numbered(self, waiter: Waiter) -> Waiter:
        """By which the algorithm knows it; each only once."""
        self.last_client = waiter.number = self.last_client + 1
        self.clients[waiter.number] = waiter
        return waiter

    def ask(self, waiter: Waiter) -> Grant | None:
        """Submit the request; the grant, if there is one at once."""
        self.hand_in(waiter)
        self.release_pending()
        self.mesh.flush()
        if waiter.failure is not None:
            raise waiter.failure
        return waiter.grant

    def hand_in(self, waiter: Waiter) -> None:
        """Its request, now or when it is its turn."""
        if self.turns is not None:
            waiter.urgency = self.urgency(waiter)
            if not self.turns.asks(waiter.number, waiter.urgency):
                return
        self.submit(waiter)

    def submit(self, waiter: Waiter) -> None:
        """What cannot be carried out fails alone: only its own client is told."""
        core = self.ready_node()
        number, want = waiter.number, waiter.want
        waiter.urgency = self.urgency(waiter)
        try:
            core.request(number, want, waiter.urgency)
            cause = NOTHING
            if self.recording is not None:
                cause = {"client": number, "want": want, **self.recorded(waiter)}
            self.carry_out("request", cause)
        except Exception as error:
            self.mesh.failures.note("request")
            self.mesh.failures.run("request", self.fail, waiter, error)

    def urgency(self, waiter: Waiter) -> int:
        """Now: its deadline comes closer."""
        if waiter.deadline is None:
            return waiter.priority * self.step
        return urgency(waiter.priority, waiter.left(), self.step)

    def rerank(self, waiter: Waiter) -> bool:
        """A request that waits counts for what it is now; False if the algorithm cannot do that."""
        counts, number = self.urgency(waiter), waiter.number
        before, waiter.urgency = waiter.urgency, counts
        if counts == before or (self.turns is not None and self.turns.change(number, counts)):
            return True
        if self.turns is not None or not self.before().change_priority(number, waiter.want, counts):
            waiter.urgency = before
            return False
        self.carry_out("priority", {"client": number, **self.recorded(waiter)})
        self.mesh.flush()
        return True

    def recorded(self, waiter: Waiter) -> dict[str, Any]:
        """In a trace; ``urgency``: what it counts for, in steps of priority."""
        if waiter.deadline is None:
            return {"priority": waiter.priority}
        counts = waiter.urgency / self.step
        return {"priority": waiter.priority, "deadline": waiter.left(), "urgency": counts}

    def fail(self, waiter: Waiter, error: Exception) -> None:
        waiter.failure = error
        if waiter.future is not None and not waiter.future.done():
            waiter.future.set_exception(error)
        self.abandon(waiter)

    def abandon(self, waiter: Waiter) -> None:
        """Nobody waits for this any more."""
        again, waiter.abandoned = waiter.abandoned, True
        waiter.stays()
        if waiter.grant is not None:
            waiter.grant.release()
            return
        if not again and waiter.deadline is not None and clock.seconds() > waiter.deadline:
            self.measures.judges(met=False)
        if self.turns is None and self.core is not None:
            self.withdraw(waiter)

    def withdraw(self, waiter: Waiter) -> None:
        """If the algorithm can; else what comes is released at once."""
        core = self.before()
        if core.withdraw(waiter.number):
            del self.clients[waiter.number]
            self.carry_out("withdraw", {"client": waiter.number})
            self.mesh.flush()
        elif self.members is not None and self.members.disk.forget(waiter.number):
            self.leave(waiter.number)
            self.mesh.flush()

    def release(self, number: int) -> None:
        """When the client next waits for something, or sooner: a client that asks again at once has
        its request go along with the token, instead of running after it."""
        if not self.released:
            self.mesh.loop.call_soon(self.release_and_flush)
        self.released.append(number)

    def release_pending(self) -> None:
        """Whatever clients have released is released now; what fails is nobody else's failure."""
        while self.released:
            number = self.released.pop(0)
            if number in self.clients:  # else its pool was withdrawn
                self.mesh.failures.run("release", self.leave, number)

    def release_and_flush(self) -> None:
        self.release_pending()
        self.mesh.flush()

    def release_some(self, number: int, permits: int) -> None:
        self.clients[number].want -= permits
        self.before().release_some(number, permits)
        self.carry_out("give-back", {"client": number, "permits": permits})
        self.mesh.flush()

    def until(self, number: int) -> float | None:
        """When the lease of this grant ends, where there are leases."""
        return None if self.members is None else self.members.until(number)

    def leave(self, number: int) -> None:
        del self.clients[number]
        core = self.ready_node()
        core.release(number)
        self.carry_out("leave", NOTHING if self.recording is None else {"client": number})
        if self.turns is not None and self.turns.served == number:
            self.serve_next(self.turns)

    def serve_next(self, turns: OneAtATime) -> None:
        while (number := turns.ends()) != NOBODY:
            waiter = self.clients[number]
            if not waiter.abandoned:
                self.submit(waiter)
                return
            del self.clients[number]

    # -- one step: call a handler, carry out its effects, write the trace --------------

    def before(self) -> Actor:
        """The node, ready to be called, and knowing of everything that clients did before."""
        if self.released:
            self.release_pending()
        return self.ready_node()

    def ready_node(self) -> Actor:
        """It knows the time, and its choice is made."""
        core, members = self.core, self.members
        assert core is not None
        chooses = self.chooses
        if members is not None:
            members.set_time()
            chooses = members.node.epoch.chooses
        if chooses and isinstance(core, ChoosingActor):
            core.choose(randrange(core.choices()))
        return core

    def carry_out(self, event: str, cause: dict[str, Any]) -> None:
        """Do what the handler asked for, but for what has to wait until a promise is on disk."""
        effects = self.out[:]
        self.out.clear()
        if self.members is not None and effects:
            effects = self.members.disk.pass_on(effects)
        self.perform(event, cause, effects)

    def perform(self, event: str, cause: dict[str, Any], effects: list[Effect]) -> None:
        """In order; an effect that fails does not stop the rest."""
        members = self.members
        failure: Exception | None = None
        for effect in effects:
            try:
                if isinstance(effect, Message):
                    self.send(effect)
                elif isinstance(effect, Enter):
                    self.enters(effect)
                elif isinstance(effect, Lost):
                    self.revoke(effect.client)
                elif isinstance(effect, Conflict) and members is not None:
                    self.conflicts(members.name(effect.node), members.conflict(effect))
            except Exception as error:
                failure = failure or error
        if self.recording is not None:
            self.recording.step(self, event, cause, effects)
        while self.returning:
            number = self.returning.pop()
            if number in self.clients:  # else its lease has ended meanwhile
                self.leave(number)
        while self.again:
            self.submit(self.numbered(self.again.pop()))
        if members is not None:
            members.sleep_until_due()
        if failure is not None:
            raise failure

    def enters(self, enter: Enter) -> None:
        waiter = self.clients[enter.client]
        if enter.fence and self.configuration is not None:
            enter.fence += self.configuration.fences
        if self.measures.entries == 0 and self.members is not None:
            self.mesh.loop.call_soon(self.is_used)
        waiter.since = monotonic()
        self.measures.enters(waiter.since - waiter.asked)
        if waiter.abandoned:
            self.returning.append(enter.client)
            return
        slots = self.slot_names(enter.slots) if enter.slots else ()
        met: bool | None = None
        if waiter.deadline is not None:
            waiter.stays()
            met = clock.seconds() <= waiter.deadline
            self.measures.judges(met)
        grant = Grant(self, enter.client, waiter.want, waiter.priority, enter.fence, slots, met)
        waiter.grant = grant
        grant.permits = enter.permits
        if waiter.future is not None and not waiter.future.done():
            waiter.future.set_result(grant)

    def slot_names(self, slots: tuple[int, ...]) -> tuple[str, ...]:
        names = self.members.slot_names() if self.members is not None else ()
        # nobody may have more than were named, but a member can say so: they go by number
        return tuple([names[slot] if slot < len(names) else str(slot) for slot in slots])

    def revoke(self, number: int) -> None:
        """The lease of this grant ended: the client must have stopped by now. If it could not even
        be told that it began, it asks again."""
        waiter = self.clients.pop(number)
        if waiter.grant is not None:
            self.measures.lost += 1
            waiter.grant._revoke()
        elif not waiter.abandoned:
            self.again.append(waiter)

    # -- messages ----------------------------------------------------------------------

    def send(self, message: Message) -> None:
        """With the guarantee that it needs: reliable in networks where links do not matter; over
        the link, in order, where they do; recovery repeats what it says itself."""
        kind, members = content(message).kind, self.members
        peer = self.names.get(message.receiver)
        if peer is None:
            return
        self.measures.sends(kind)
        since = boot = 0
        inner = isinstance(message, Inner)
        if isinstance(message, Inner):
            boot = message.boot
            if members is not None:
                if message.returned:
                    message.proofs = members.proofs.attach(message.returned)
                if message.is_timed():
                    since = members.clock  # its lease goes on running
        payload = self.shapes[kind].pack(message)
        fields = (self.name, self.identity, kind, payload, since, boot, members is not None)
        said: Content = new(Content, fields)
        if members is None:
            custody = self.reliable or message.tokens() > 0 or message.permits() > 0
            linked = custody or peer in self.near
        else:
            way = carrier(message, not self.reliable)
            custody = way == RELIABLE
            linked = custody or (way == LINK and (not inner or peer in self.near))
        if linked:
            self.mesh.send(peer, said, custody, message.urgent)
            if self.recording is not None:
                message.serial = serial(self.mesh.boot, self.mesh.sessions[peer].sent)
        elif members is not None:
            self.mesh.router.send(peer, said, message.urgent)

    def receive(self, sender: str, frame: Carry | RoutedFrame) -> None:
        shape = self.shapes.get(frame.kind)
        if shape is None:
            self.receive_control(sender, frame)
        elif frame.identity == self.identity and (
            not self.stopped or frame.kind == READ_WHEN_STOPPED
        ):
            self.deliver(sender, frame, shape)  # else it is of another pool of this name

    def deliver(self, sender: str, frame: Carry | RoutedFrame, shape: Shape) -> None:
        number = self.numbers.get(sender)
        if number is None:
            number = self.stranger(sender)
        core, members = self.before(), self.members
        payload = frame.payload
        message = shape.message(core.me, payload)
        message.sender = number
        if isinstance(message, Inner) and members is not None:
            adopted = members.member.adopted
            if message.epoch == adopted:
                message.epoch = adopted  # it is compared with that many times
            if message.is_timed():
                if frame.stamp is None:
                    raise BadFrame(f"a {frame.kind} with permits under a lease, without its age")
                message.travelled = int(self.mesh.age(frame.stamp) * (1 + 2 * DRIFT)) // 1000 + 1
        self.measures.received += 1
        self.heard = True
        if not self.admits(sender, message, len(payload)):
            self.carry_out("timer", NOTHING)  # it may have led to a question
            return
        cause = NOTHING
        if self.recording is not None:
            message.serial = self.serial(sender, frame)
            cause = self.recording.delivery(message)
        core.receive(message)
        self.carry_out("deliver", cause)

    def admits(self, sender: str, message: Message, size: int) -> bool:
        """What the algorithm inside says without the token can do no harm."""
        if self.members is None:
            return True
        inner = message if isinstance(message, Inner) and not self.reliable else None
        if inner is not None and not inner.is_timed() and len(inner.returned) == 0:
            return True
        return self.members.validation.admits(sender, message, size)

    def serial(self, sender: str, frame: Carry | RoutedFrame) -> int:
        """The message's name in the trace, the same at both ends."""
        if isinstance(frame, RoutedFrame):
            return serial(frame.boot, frame.number)
        return serial(self.mesh.sessions[sender].peer_boot, frame.number)

    def route(self, node: str, word: str, message: Any) -> None:
        """To any node of this pool, best effort."""
        self.mesh.router.send(node, Content(self.name, self.identity, word, encode(message)))
        self.mesh.flush()

    # -- nodes and numbers -------------------------------------------------------------

    def meet(self, name: str) -> int:
        """A node that takes part, or may: its number."""
        number = self.numbers.get(name)
        if number is None:
            assert self.configuration is not None
            number = self.numbers[name] = self.configuration.number(name)
            self.names[number] = name
        return number

    def stranger(self, name: str) -> int:
        """Somebody writes to us whom we have not met."""
        if self.reliable and self.members is None:
            raise BadFrame(f"a message of {name}, which is not a node of this pool")
        if len(self.numbers) > 2 * limits.MOST_NODES:
            raise BadFrame("a message of more nodes than allowed")
        return self.meet(name)

    def forget(self) -> None:
        self.names.clear()
        self.numbers.clear()
