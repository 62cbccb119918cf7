"""What two nodes remember of their link, whatever becomes of the connections beneath it.

A *generation* is one life of the link, from ``link_up`` to ``link_down``; connections may
break and be replaced within it. Within a generation messages are numbered and kept until
acknowledged, so that a new connection takes over where the old one stopped: nothing is
lost, nothing comes twice, the order stays.

When a generation ends, what was not acknowledged may or may not have arrived. For most
messages that does not matter: the algorithm has been told that the link failed. A message
that carries a token or permits must be neither lost nor doubled, so it has *custody*:
it has a second number that outlives generations, and goes out first when the link returns,
unless the other side says that it has it already. Meanwhile it is routed through others
(:mod:`.routed`), as is all that custody keeps for a process to which there never was a link;
whichever comes first counts. Custody ends without delivery only if the other process restarts:
what it had received died with it, so sending it again could double it. (That loss is for
recovery to repair, not for the link.) What was meant for the new process, of which the sender had
heard before this link did, is its first custody message.

No input or output here: :mod:`.mesh` carries the frames.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from meshlock.live.links.frames import (
    CARRY,
    FRAME_LIMIT,
    LENGTH,
    VERSION,
    BadFrame,
    Carry,
    Content,
    HelloFrame,
    Stamp,
    Welcome,
    encode,
)

IN_FLIGHT = 8192  # messages that may be under way on one link; one more and the link counts as dead
IN_CUSTODY = 65536  # messages that may wait for a link to return, or for a way
MOST_BYTES = 8 * FRAME_LIMIT  # nor may either be longer than this, all together
OVERHEAD = 256  # of a message that waits, in bytes, whatever is in it
Kept = tuple[int, Content]  # a custody message, with its number


class Overflow(Exception):
    """The other side does not take what we send."""


class LinkSession:
    def __init__(
        self, me: str, boot: int, peer: str, stamp: Callable[[int], Stamp] | None = None
    ) -> None:
        self.me = me
        self.boot = boot
        self.peer = peer
        self.stamp = stamp  # of a message to this peer, by the age of what it says
        self.peer_boot = 0  # of the process we last spoke to; 0 before the first time
        self.generation = 0
        self.up = False
        # of this generation
        self.sent = 0
        self.received: int = 0
        self.told: int = 0  # the highest number we have acknowledged
        self.in_flight: deque[tuple[int, int, bytes]] = deque()  # number, custody, frame
        self.in_flight_bytes = 0
        # of all generations with this process
        self.custody: deque[Kept] = deque()
        self.custody_bytes = 0
        self.custody_sent = 0
        self.custody_received = 0
        self.forsaken = 0  # custody messages when the peer's process turned out to be new
        self.repeats = 0  # frames that came again and were not let through

    # -- greeting ------------------------------------------------------------------

    def hello(self, seen: str = "") -> HelloFrame:
        return HelloFrame(*self.standing(self.up), seen)

    def standing(self, up: bool) -> tuple[int, str, int, int, int, bool, int, int]:
        who = (VERSION, self.me, self.boot, self.peer_boot)
        return (*who, self.generation, up, self.received, self.custody_received)

    def welcome(self, hello: HelloFrame) -> tuple[Welcome, bool]:
        """Decide how to go on with the one who dialled; True if our generation ended."""
        was_up = self.up
        self.meet(hello.boot)
        known = hello.known == self.boot
        resumed = self.up and hello.up and known and hello.generation == self.generation
        if resumed:
            self.acknowledge(hello.received)
        else:
            generation = max(self.generation, hello.generation) + 1
            self.begin(generation, hello.kept if known else 0)
        return Welcome(*self.standing(resumed)), was_up and not resumed

    def obey(self, welcome: Welcome, told: HelloFrame) -> bool | None:
        """Go on as decided: True if our generation ended; None if what we told is outdated."""
        mine = (self.generation, self.up, self.peer_boot)
        if mine != (told.generation, told.up, told.known) or welcome.known != self.boot:
            return None
        was_up = self.up
        if welcome.up:
            if not self.up or welcome.boot != self.peer_boot:
                raise BadFrame("a WELCOME that resumes an unknown generation")
            self.acknowledge(welcome.received)
            return False
        if welcome.generation <= self.generation:
            raise BadFrame("a WELCOME to a past generation")
        self.meet(welcome.boot)
        self.begin(welcome.generation, welcome.kept)
        return was_up

    def meet(self, boot: int) -> None:
        """The peer's process is this one; if it is new, the old one took its memory along."""
        if boot != self.peer_boot:
            kept = [content for _, content in self.custody]
            meant = [one for one in kept if one.boot == boot or (one.recovers and one.boot == 0)]
            if self.peer_boot != 0:
                self.up = False
                self.forsaken += len([one for one in kept if one.boot != boot and not one.recovers])
                self.custody.clear()
                self.custody_bytes = 0
                self.custody_sent = 0
                for content in meant:
                    self.retain(content)
            self.custody_received = 0
            self.peer_boot = boot

    def begin(self, generation: int, kept: int) -> None:
        """A new generation: what custody keeps goes first."""
        self.generation = generation
        self.up = True
        self.sent = self.received = self.told = 0
        self.in_flight.clear()
        self.in_flight_bytes = 0
        self.arrived(kept)
        for number, content in self.custody:
            self.write(number, content)

    def end(self) -> None:
        """The link has failed."""
        self.up = False
        self.in_flight.clear()
        self.in_flight_bytes = 0

    # -- sending -------------------------------------------------------------------

    def send(self, content: Content, custody: bool) -> bytes:
        """Send, or keep for later: the frame to be written now, if the link is up. What cannot be
        written is neither."""
        if not custody:
            if not self.up:
                return b""
            self.refuse_more()
            return self.write(0, content)
        if len(self.custody) >= IN_CUSTODY or self.custody_bytes >= MOST_BYTES:
            raise Overflow(f"{len(self.custody)} messages wait for {self.peer} already")
        frame = b""
        try:
            if self.up:
                self.refuse_more()
                frame = self.write(self.custody_sent + 1, content)
        except Overflow:
            self.retain(content)
            raise
        self.retain(content)
        return frame

    def retain(self, content: Content) -> None:
        self.custody_sent += 1
        self.custody_bytes += OVERHEAD + len(content.payload)
        self.custody.append((self.custody_sent, content))

    def arrived(self, custody: int) -> None:
        """The other side has all custody messages up to this number."""
        while self.custody and self.custody[0][0] <= custody:
            content = self.custody.popleft()[1]
            self.custody_bytes -= OVERHEAD + len(content.payload)

    def last(self, custody: bool) -> int:
        """The name of the message that was carried last, the same at both ends."""
        return serial(self.generation, self.sent, self.custody_sent if custody else 0)

    def refuse_more(self) -> None:
        waiting = len(self.in_flight)
        if waiting >= IN_FLIGHT or self.in_flight_bytes >= MOST_BYTES:
            raise Overflow(f"{self.peer} has not acknowledged {waiting} messages")

    def write(self, custody: int, content: Content) -> bytes:
        pool, identity, kind, payload, since, _, _ = content
        stamp = self.stamp(since) if since and self.stamp is not None else None
        number, received = self.sent + 1, self.received
        frame = pack_carry(number, received, custody, pool, identity, kind, payload, stamp)
        self.sent = number
        self.told = received
        self.in_flight.append((number, custody, frame))
        self.in_flight_bytes += len(frame)
        return frame

    def after(self, number: int) -> list[bytes]:
        """What a connection that has written up to this number must still write."""
        return [frame for sent, _, frame in self.in_flight if sent > number]

    # -- receiving -----------------------------------------------------------------

    def take(self, frame: Carry) -> bool:
        """Is this message new? The next in line is; a repeated one is not; a gap is a fault."""
        self.acknowledge(frame.acknowledged)
        if frame.number <= self.received:
            self.repeats += 1
            return False
        if frame.number != self.received + 1:
            raise BadFrame(f"message {frame.number} after {self.received}")
        self.received = frame.number
        if frame.custody == 0:
            return True
        if frame.custody <= self.custody_received:
            self.repeats += 1
            return False
        if frame.custody != self.custody_received + 1:
            raise BadFrame(f"custody message {frame.custody} after {self.custody_received}")
        self.custody_received = frame.custody
        return True

    def acknowledge(self, number: int) -> None:
        """The other side has everything up to this number."""
        if number > self.sent:
            raise BadFrame(f"an acknowledgement of {number} when {self.sent} were sent")
        waiting = self.in_flight
        while waiting and waiting[0][0] <= number:
            _, custody, frame = waiting.popleft()
            self.in_flight_bytes -= len(frame)
            if custody:
                self.arrived(custody)


def serial(generation: int, number: int, custody: int) -> int:
    """One number per message and direction, the same at both ends of a link."""
    return custody * 2 + 1 if custody else (generation << 32 | number) * 2


def pack_carry(
    number: int,
    acknowledged: int,
    custody: int,
    pool: str,
    identity: int,
    kind: str,
    payload: bytes,
    stamp: Stamp | None,
) -> bytes:
    """The bytes of a Carry with these fields, which nobody needs as an object."""
    fields = (CARRY, number, acknowledged, custody, pool, identity, kind, payload, stamp)
    body = encode(fields)
    return LENGTH.pack(len(body)) + body
