"""Processes of one search talk without waiting for each other."""

import os
import signal

from meshlock.check.exchange import Exchange, between

LONG = bytes(range(256)) * 20_000  # five megabytes: more than any socket holds


def both():
    """Both sides, in one process."""
    one, other = between(2)
    return Exchange(0, [one, {}]), Exchange(1, [{}, other])


def test_what_is_said_is_there_at_once():
    """Though the sender goes on working and never looks round."""
    one, other = both()
    one.put(1, ("level", 3))
    one.put(1, "the end")
    assert other.get(0) == [("level", 3), "the end"]
    assert other.get(0) == [] and one.get(0) == []


def test_both_may_say_more_than_there_is_room_for():
    one, other = both()
    one.put(1, LONG)
    other.put(0, LONG)
    one.put(1, "behind")
    heard, heard_there = [], []
    while len(heard) < 1 or len(heard_there) < 2:
        heard += one.get(0)
        heard_there += other.get(0)
    assert heard == [LONG] and heard_there == [LONG, "behind"]


def test_nobody_ends_before_everything_is_said():
    one, other = both()
    child = os.fork()
    if child == 0:
        one.put(1, LONG)
        one.finish(1.0)
        os._exit(0)
    for end in one.sockets.values():
        end.close()
    heard = []
    while not heard:
        heard += other.get(1.0)
    assert heard == [LONG]
    assert os.waitpid(child, 0)[1] == 0


def test_somebody_who_is_gone_is_neither_heard_nor_told():
    one, other = both()
    child = os.fork()
    if child == 0:
        signal.pause()
    for end in one.sockets.values():
        end.close()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert other.get(1.0) == [] and not other.sockets
    other.put(0, LONG)
    other.finish(1.0)
    assert other.get(0) == []
