"""How soon a node gets its link while strangers crowd the door of the one it dials.

Three real processes: a node that is attacked, a stranger with hundreds of connections, and a node
that wants a link. Time is taken from the start of the third node's dialling to its link.

    python benchmarks/strangers_at_the_door.py             # every attack, about two minutes
    python benchmarks/strangers_at_the_door.py --plain     # links without TLS only
    python benchmarks/strangers_at_the_door.py --runs 10

Attacks: idle connections that are opened again when they are dropped; garbage; a first flight
that is good and nothing after it (half); that, and then a hang-up at once (churn); connections
that are closed as soon as they are open (hurry). From the address of the honest node, from
another one, or from a thousand.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import selectors
import socket
import ssl
import statistics
import subprocess
import sys
import time

from meshlock import Node
from meshlock.live.links.frames import VERSION, HelloFrame, pack
from meshlock.live.machine.loop import run

SECRET = "a secret for one benchmark run"
ATTACKS = ("idle", "garbage", "half", "churn", "hurry")
CONNECTIONS = 600
SOURCES = {"the same": "127.0.0.1", "another": "127.0.0.2", "many": ""}
"""Addresses that the stranger comes from; the honest node has the first."""


# -- the stranger --------------------------------------------------------------------------


def first_flight(tls: bool) -> bytes:
    """What a good peer says first, as far as anybody can say it who knows no secret."""
    if not tls:
        return pack(HelloFrame(VERSION, "x", 7, 0, 0, False, 0))[:-1]  # and never the last byte
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    sent = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    return sent.read()


class Attack:
    def __init__(self, kind: str, port: int, tls: bool, source: str) -> None:
        self.kind = kind
        self.target = ("127.0.0.1", port)
        self.source = source
        good = first_flight(tls)
        self.says = {"garbage": b"\xff" * 200, "half": good, "churn": good}.get(kind, b"")
        self.leaves = kind in ("churn", "hurry")
        self.selector = selectors.DefaultSelector()
        self.made = 0

    def open(self) -> None:
        stranger = socket.socket()
        stranger.setblocking(False)
        linger = b"\x01\0\0\0\0\0\0\0"  # close with a reset: no port is left waiting
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        try:
            stranger.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT, on Linux
            stranger.bind(
                (self.source or f"127.0.{random.randint(1, 4)}.{random.randint(1, 250)}", 0)
            )
            stranger.connect_ex(self.target)
        except OSError:
            stranger.close()
            time.sleep(0.001)  # out of ports
            return
        self.selector.register(stranger, selectors.EVENT_WRITE)

    def turn(self, key: selectors.SelectorKey) -> None:
        stranger = key.fileobj
        assert isinstance(stranger, socket.socket)
        try:
            if key.events == selectors.EVENT_WRITE:
                self.made += 1
                if self.says:
                    stranger.send(self.says)
                if not self.leaves:
                    self.selector.modify(stranger, selectors.EVENT_READ)
                    return
            elif stranger.recv(65536):
                return
        except OSError:
            pass
        self.selector.unregister(stranger)
        stranger.close()

    def go_on(self) -> None:
        """Until we are killed; says how many connections there were, once per second."""
        said = 0.0
        while True:
            for _ in range(CONNECTIONS - len(self.selector.get_map())):
                self.open()
            for key, _ in self.selector.select(0.1):
                self.turn(key)
            if self.made >= CONNECTIONS and time.monotonic() - said > 1.0:
                said = time.monotonic()
                print(self.made, flush=True)


# -- the nodes -----------------------------------------------------------------------------


async def victim(secret: str | None) -> None:
    async with Node("victim", secret=secret) as node:
        print(node.address, flush=True)
        await asyncio.Event().wait()


async def dial(address: str, secret: str | None) -> float:
    """Seconds until there is a link."""
    async with Node("honest", secret=secret) as node:
        began = time.monotonic()
        node.connect(address)
        while "victim" not in node._local.mesh.linked:
            await asyncio.sleep(0.002)
        return time.monotonic() - began


class Attacked:
    """A node under attack, and its attacker; both are gone at the end."""

    def __init__(self, kind: str, tls: bool, source: str) -> None:
        where = SOURCES[source]
        me = [sys.executable, __file__, "--secret", SECRET if tls else ""]
        self.victim = subprocess.Popen([*me, "--victim"], stdout=subprocess.PIPE, text=True)
        assert self.victim.stdout is not None
        self.address = self.victim.stdout.readline().strip()
        given = ["--attack", kind, "--source", where, "--target", self.address]
        self.attacker = subprocess.Popen([*me, *given], stdout=subprocess.PIPE, text=True)
        self.connections()

    def connections(self) -> int:
        """How many the attacker has made; the first time, once all are made."""
        assert self.attacker.stdout is not None
        return int(self.attacker.stdout.readline())

    def __enter__(self) -> Attacked:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self.attacker, self.victim):
            process.kill()
            process.communicate()


def measure(kind: str, tls: bool, source: str, runs: int) -> tuple[list[float], float]:
    """Seconds to a link, sorted; and connections of the attacker per second."""
    took = []
    with Attacked(kind, tls, source) as attacked:
        made, began = attacked.connections(), time.monotonic()
        for _ in range(runs):
            took.append(run(asyncio.wait_for(dial(attacked.address, SECRET if tls else None), 60)))
        more = 0
        while more == 0 or time.monotonic() - began < 1.5:  # reads what was said meanwhile, too
            more = attacked.connections() - made
        return sorted(took), more / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="links without TLS only")
    parser.add_argument("--victim", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--attack", choices=ATTACKS, help="this attack only")
    parser.add_argument("--target", help=argparse.SUPPRESS)
    parser.add_argument("--source", default="127.0.0.1", help=argparse.SUPPRESS)
    parser.add_argument("--secret", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.victim:
        run(victim(given.secret or None))
    elif given.target:
        port = int(given.target.rpartition(":")[2])
        Attack(given.attack, port, bool(given.secret), given.source).go_on()
    else:
        print(
            f"{'attack':<10}{'links':<7}{'from':<11}{'median':>9}{'slowest':>9}{'attempts/s':>12}"
        )
        for tls in (False,) if given.plain else (False, True):
            for kind in [given.attack] if given.attack else ATTACKS:
                for source in SOURCES:
                    took, rate = measure(kind, tls, source, given.runs)
                    middle = f"{statistics.median(took):.3f} s"
                    print(
                        f"{kind:<10}{'TLS' if tls else 'plain':<7}{source:<11}{middle:>9}"
                        f"{took[-1]:>7.3f} s{rate:>12,.0f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
