"""What can never be used is refused: what a user allows is to be tried.

Else a search would say that every state was seen, and the states that matter would not be among
them.
"""

from __future__ import annotations

from typing import Final

from meshlock.algorithms.actor import Actor, Algorithm
from meshlock.algorithms.amounts import is_part
from meshlock.check.faults import Faults
from meshlock.check.judging import NAMES as RECOVERY
from meshlock.check.setup import CheckedRequest, SetUp
from meshlock.errors import Refused, setting

NEEDS: Final = (
    ("crashing", ("crashes", "stay_dead")),
    ("forgets", ("crashes",)),
    ("wall_clock", ("forgets",)),
    ("proposers", ("proposals",)),
    ("member_changes", ("proposals",)),
    ("resizes", ("proposals",)),
    ("renames", ("proposals",)),
)
"""A setting, and what it is of no use without: one of these."""
MOST: Final = (("forgets", "crashes"), ("slow_ticks", "ticks"))
"""There can be no more of the one than of the other."""


def refuse_unspendable(setup: SetUp) -> None:
    refuse_raises(setup)
    refuse_parts(setup)
    most = max([len(setup.requests_of(node)) for node in range(setup.network.size)])
    if setup.clients > most:
        raise Refused(
            f"{setting('clients')} {setup.clients}: no node makes as many requests. Use "
            f"{setting('clients')} {most}, or add requests."
        )
    if setup.failures != "drain" and not setup.changes and setup.flips == 0:
        raise Refused(
            f"{setting('failures')} {setup.failures}: no link changes. Leave it out, or add "
            f"{setting('change')} or {setting('changes')}."
        )
    if setup.faults is not None:
        refuse_unspendable_faults(setup, setup.faults)


def refuse_unspendable_faults(setup: SetUp, faults: Faults) -> None:
    given, declared = faults.given, faults.declared
    for name, needed in NEEDS:
        used = not faults.wall_clock if name == "wall_clock" else bool(given.get(name))
        if used and not any(given.get(one) for one in needed):
            first = setting(declared[needed[0]].key)
            raise Refused(f"{setting(declared[name].key)} needs {first}: use {first} 1.")
    for name, bound in MOST:
        if bound in given and given[bound] < given.get(name, 0):
            raise Refused(
                f"{setting(declared[name].key)} {given[name]} is more than "
                f"{setting(bound)} {given[bound]}: use at most {given[bound]}."
            )
    if faults.cuts and not setup.algorithm.assumes.changing_links:
        raise Refused(
            f"{setup.algorithm.name} is for networks that stay as they are, where a cut is a "
            f"delay, and every delay is tried: leave out {setting('cuts')}."
        )
    refuse_made_changes(setup, faults)


def refuse_made_changes(setup: SetUp, faults: Faults) -> None:
    """A change that is made already, and that no other change undoes."""
    members = faults.members or (0,)
    changes = [text.split() for text in faults.member_changes]
    for action, node in changes:
        other = "remove" if action == "add" else "add"
        if (int(node) in members) == (action == "add") and [other, node] not in changes:
            state = "is a member" if action == "add" else "is no member"
            raise Refused(
                f"{setting('member-change')} '{action} {node}': node {node} {state} from the "
                f"beginning. Leave it out."
            )
    sizes = {change.permits for change in faults.changes if change.permits}
    if sizes == {setup.permits} and not faults.renames:
        raise Refused(
            f"{setting('resize')} {setup.kinds}: the pool begins with that number. Use another."
        )


def refuse_raises(setup: SetUp) -> None:
    algorithm = setup.algorithm
    if setup.raises and not (algorithm.serves.priorities and can_change(setup)):
        raise Refused(
            f"{algorithm.name} cannot change the priority of a request: leave out "
            f"{setting('raise')}."
        )
    for node, priority in setup.raises:
        asked = requests_of(setup, "raise", node, priority)
        targets = {number for one, number in setup.raises if one == node}
        if targets == {priority} and all(request.priority == priority for request in asked):
            raise Refused(
                f"{setting('raise')} {node}:{priority}: node {node} asks with priority {priority} "
                f"from the beginning. Use another priority."
            )


def refuse_parts(setup: SetUp) -> None:
    if setup.parts and not can(setup, "release_some"):
        raise Refused(
            f"{setup.algorithm.name} cannot release a part of what a client holds: leave out "
            f"{setting('release-part')}."
        )
    for node, permits in setup.parts:
        asked = requests_of(setup, "release-part", node, permits)
        if permits < 1:
            raise Refused(f"{setting('release-part')} {node}:{permits}: a part is 1 or more.")
        if setup.kinds.several and not any(is_part(permits, one.want) for one in asked):
            raise Refused(
                f"{setting('release-part')} {node}:{setup.kinds.write(permits)}: no request of "
                f"node {node} is for that and more."
            )
        if not setup.kinds.several and all(request.want <= permits for request in asked):
            raise Refused(
                f"{setting('release-part')} {node}:{permits}: no request of node {node} is for "
                f"more than {permits}. Use {setting('request')} {node}:{permits + 1}."
            )


def requests_of(setup: SetUp, word: str, node: int, number: int) -> list[CheckedRequest]:
    """Those of a node that a flag names."""
    size = setup.network.size
    if node >= size:
        raise Refused(
            f"{setting(word)} {node}:{number}: there is no node {node}; the last is {size - 1}."
        )
    asked = setup.requests_of(node)
    if not asked:
        raise Refused(f"{setting(word)} {node}:{number}: node {node} asks for nothing.")
    return asked


def can_change(setup: SetUp) -> bool:
    return can(setup, "change_priority")


def can(setup: SetUp, handler: str) -> bool:
    """Has the algorithm a handler of its own for this? The recovery layer has all."""
    if setup.faults is not None:
        return True
    node = setup.algorithm.make(setup.network, setup.permits, setup.options, [])[0]
    return getattr(type(node), handler) is not getattr(Actor, handler)


def refuse_vacuous(setup: SetUp, names: list[str]) -> None:
    """A property that is named must be judged: no verdict without having looked."""
    for name in names:
        reason = unjudged(setup, setup.algorithm, name)
        if reason:
            raise Refused(f"{setting('property')} {name} is not judged: {reason}. Leave it out.")


def unjudged(setup: SetUp, algorithm: Algorithm, name: str) -> str:
    """Why this property cannot be judged here; empty: it can."""
    if name in RECOVERY and setup.faults is None:
        return f"it needs nodes that recover, {setting('members')}"
    if name == "slots" and setup.faults is not None and not setup.faults.slots:
        return f"it needs grants that name their permits, {setting('slots')}"
    if name == "liveness" and setup.faults is not None:
        return f"with {setting('members')} it is 'served' that says so"
    if name in ("one-token", "conservation") and not algorithm.serves.token:
        return f"{algorithm.name} has no token"
    if name == "order" and not algorithm.serves.priorities:
        return f"{algorithm.name} has no priorities"
    return ""
