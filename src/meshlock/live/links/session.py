"""What two nodes remember of their link, whatever becomes of the connections beneath it.

A *generation* is one life of the link, from ``link_up`` to ``link_down``; connections may
break and be replaced within it. Messages between two processes are numbered, over all
generations, and kept until acknowledged, so that a new connection takes over where the old one
stopped: nothing is lost, nothing comes twice, the order stays.

When a generation ends, what was not acknowledged may or may not have arrived. For most
messages that does not matter: the algorithm has been told that the link failed. They are given
up, and the next message says how many numbers before it were (its *gap*). A message
that carries a token or permits must be neither lost nor doubled, so it has *custody*: it stays,
under the number that it has, and goes out first when the link returns, unless the other side says
that it has it already. Meanwhile it is routed through others
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
Kept = tuple[int, bool, Content, bytes]
"""A message that waits: its number, whether it has custody, and its frame if the link is up."""


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
        # Numbers of messages, over all generations with this process.
        self.sent = 0
        self.acknowledged = 0  # by the peer; <= sent
        self.received: int = 0
        self.told: int = 0  # the highest number we have acknowledged; <= received
        self.waiting: deque[Kept] = deque()  # for acknowledgements, by number
        self.waiting_bytes = 0
        self.routed = 0  # without a link: the last number that went another way ...
        self.repeat_at: float | None = None  # ... and when to begin again with the first
        self.forsaken = 0  # custody messages when the peer's process turned out to be new
        self.repeats = 0  # messages that came again and were not let through

    @property
    def custody(self) -> list[Kept]:
        """Of what waits: what outlives the generation."""
        return [one for one in self.waiting if one[1]]

    # -- greeting ------------------------------------------------------------------

    def hello(self, seen: str = "") -> HelloFrame:
        return HelloFrame(*self.standing(self.up), seen)

    def standing(self, up: bool) -> tuple[int, str, int, int, int, bool, int]:
        who = (VERSION, self.me, self.boot, self.peer_boot)
        return (*who, self.generation, up, self.received)

    def welcome(self, hello: HelloFrame) -> tuple[Welcome, bool]:
        """Decide how to go on with the one who dialled; True if our generation ended."""
        was_up = self.up
        self.meet(hello.boot)
        known = hello.known == self.boot
        resumed = self.up and hello.up and known and hello.generation == self.generation
        if known:
            self.acknowledge(hello.received)
        if not resumed:
            self.begin(max(self.generation, hello.generation) + 1)
        return Welcome(*self.standing(resumed)), was_up and not resumed

    def obey(self, welcome: Welcome, told: HelloFrame) -> bool | None:
        """Go on as decided: True if our generation ended; None if what we told is outdated."""
        mine = (self.generation, self.up, self.peer_boot)
        if mine != (told.generation, told.up, told.known) or welcome.known != self.boot:
            return None
        was_up = self.up
        if welcome.up and (not self.up or welcome.boot != self.peer_boot):
            raise BadFrame("a WELCOME that resumes an unknown generation")
        if not welcome.up and welcome.generation <= self.generation:
            raise BadFrame("a WELCOME to a past generation")
        self.meet(welcome.boot)
        self.acknowledge(welcome.received)
        if not welcome.up:
            self.begin(welcome.generation)
        return was_up and not welcome.up

    def meet(self, boot: int) -> None:
        """The peer's process is this one; if it is new, the old one took its memory along."""
        if boot != self.peer_boot:
            kept = [content for _, _, content, _ in self.custody]
            if self.peer_boot != 0:
                meant = [
                    one for one in kept if one.boot == boot or (one.recovers and one.boot == 0)
                ]
                self.forsaken += len([one for one in kept if one.boot != boot and not one.recovers])
                self.up = False
                self.sent = 0
                self.waiting.clear()
                self.waiting_bytes = 0
                for content in meant:
                    self.retain(content, True)
            self.acknowledged = self.received = self.told = self.routed = 0
            self.peer_boot = boot

    def begin(self, generation: int) -> None:
        """A new generation: what custody keeps goes first."""
        self.end()
        self.generation = generation
        self.up = True
        kept, self.waiting = self.waiting, deque()
        for number, custody, content, _ in kept:
            self.waiting.append((number, custody, content, self.write(number, custody, content)))

    def end(self) -> None:
        """The link has failed."""
        self.up = False
        self.routed = 0
        self.waiting = deque([(*one[:3], b"") for one in self.custody])
        self.waiting_bytes = sum([size(content) for _, _, content, _ in self.waiting])

    # -- sending -------------------------------------------------------------------

    def send(self, content: Content, custody: bool) -> bytes:
        """Send, or keep for later: the frame to be written now, if the link is up. What cannot be
        written is neither."""
        if not self.up:
            if custody:
                self.refuse_more(IN_CUSTODY, MOST_BYTES)
                self.retain(content, custody)
            return b""
        try:
            self.refuse_more(IN_FLIGHT, MOST_BYTES)
        except Overflow:
            if custody:  # the link fails now, and takes along what has none
                self.refuse_more(IN_CUSTODY, 2 * MOST_BYTES)
                self.retain(content, custody)
            raise
        frame = self.write(self.sent + 1, custody, content)
        self.retain(content, custody, frame)
        return frame

    def refuse_more(self, messages: int, size: int) -> None:
        waiting = len(self.waiting)
        if waiting >= messages or self.waiting_bytes >= size:
            raise Overflow(f"{self.peer} has not acknowledged {waiting} messages")

    def retain(self, content: Content, custody: bool, frame: bytes = b"") -> None:
        self.sent += 1
        self.waiting_bytes += size(content)
        self.waiting.append((self.sent, custody, content, frame))

    def write(self, number: int, custody: bool, content: Content) -> bytes:
        """Behind all that waits."""
        before = self.waiting[-1][0] if self.waiting else self.acknowledged
        pool, identity, kind, payload, since, _, _ = content
        stamp = self.stamp(since) if since and self.stamp is not None else None
        self.told = received = self.received
        gap = number - before - 1
        return pack_carry(number, received, gap, custody, pool, identity, kind, payload, stamp)

    def after(self, number: int) -> list[bytes]:
        """What a connection that has written up to this number must still write."""
        return [frame for sent, _, _, frame in self.waiting if sent > number]

    # -- receiving -----------------------------------------------------------------

    def take(self, frame: Carry) -> bool:
        """Is this message new? The next in line is; a repeated one is not; a gap that was not
        announced is a fault."""
        self.acknowledge(frame.acknowledged)
        if frame.number - frame.gap - 1 > self.received:
            raise BadFrame(f"message {frame.number} after {self.received}")
        return self.is_next(frame.number, frame.gap)

    def is_next(self, number: int, gap: int) -> bool:
        """Take it if it is: however it came, it comes once and in order."""
        if not number - gap <= self.received + 1 <= number:
            self.repeats += 1
            return False
        self.received = number
        return True

    def acknowledge(self, number: int) -> None:
        """The other side has everything up to this number."""
        if number > self.sent:
            raise BadFrame(f"an acknowledgement of {number} when {self.sent} were sent")
        if number > self.acknowledged:
            self.acknowledged = number
            waiting = self.waiting
            while waiting and waiting[0][0] <= number:
                self.waiting_bytes -= size(waiting.popleft()[2])


def size(content: Content) -> int:
    """What it takes up while it waits, in bytes."""
    return OVERHEAD + len(content.payload)


def serial(boot: int, number: int) -> int:
    """The name of a message of that process, the same at both ends, among all of one direction."""
    return (boot & (1 << 21) - 1) << 32 | number


def pack_carry(
    number: int,
    acknowledged: int,
    gap: int,
    custody: bool,
    pool: str,
    identity: int,
    kind: str,
    payload: bytes,
    stamp: Stamp | None,
) -> bytes:
    """The bytes of a Carry with these fields, which nobody needs as an object."""
    fields = (CARRY, number, acknowledged, gap, custody, pool, identity, kind, payload, stamp)
    body = encode(fields)
    return LENGTH.pack(len(body)) + body
