"""Which algorithms there are, and which set-ups each can serve."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from meshlock.algorithms.actor import Actor, Algorithm, Effect
from meshlock.algorithms.amounts import fits, several
from meshlock.errors import Refused, setting

FILES = [
    "jiang",
    "scheme_instances",
    "naimi_trehel",
    "jiang_printed",
    "reverse_link",
    "singhal",
    "suzuki_kasami",
    "goscinski",
    "mueller",
    "neilsen_mizuno",
    "lelann",
    "lamport",
    "ricart_agrawala",
    "singhal_dynamic",
    "raynal",
    "maekawa",
    "arbiter",
    "sanders",
    "chandy_misra",
    "direct",
]
"""In the order in which lists show their algorithms."""

MODULES = [import_module(f"meshlock.algorithms.{file}") for file in FILES]

ALGORITHMS: dict[str, Algorithm] = {
    entry.name: entry for module in MODULES for entry in module.ALGORITHMS
}


def find(name: str) -> Algorithm:
    """The algorithm of this name; one with a slash is a mutant of the algorithm before it."""
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    if "/" in name:
        from meshlock.algorithms.mutants.catalogue import mutant

        return mutant(name).algorithm
    from meshlock.algorithms.outside import of_package

    found = of_package(name)
    if found is not None:
        return found
    close = get_close_matches(name, ALGORITHMS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"choose one of {', '.join(ALGORITHMS)}."
    raise Refused(f"There is no algorithm '{name}': {hint}")


def joined(
    algorithm: Algorithm,
    size: int,
    founder: int,
    permits: int,
    options: dict[str, str],
    out: list[Effect],
) -> list[Actor]:
    """Nodes without links that have come to a pool, as live nodes do."""
    if algorithm.newcomers.join is None:
        raise Refused(
            f"{algorithm.name} is for fixed networks: its nodes cannot start without links."
        )
    join = algorithm.newcomers.join
    return [join(me, me == founder, permits, options, out) for me in range(size)]


def with_defaults(algorithm: Algorithm, given: dict[str, str]) -> dict[str, str]:
    """The algorithm's options with defaults filled in; refuses what it does not know."""
    options = {name: values[0] for name, values in algorithm.options.items()}
    for name, value in given.items():
        values = algorithm.options.get(name)
        if values is None:
            known = ", ".join(algorithm.options) or "none"
            raise Refused(f"{algorithm.name} has no option '{name}'; its options are: {known}.")
        if "<number>" in values:
            if not value.isdecimal() or len(value) > 18 or int(value) < 1:
                raise Refused(
                    f"The option {name} of {algorithm.name} takes a whole number above 0 of up to "
                    f"18 digits, not '{value[:40]}'."
                )
        elif value not in values:
            raise Refused(
                f"The option {name} of {algorithm.name} is one of {', '.join(values)}, not "
                f"'{value[:40]}'."
            )
        options[name] = value
    return options


def refuse_impossible(
    algorithm: Algorithm, *, permits: int, want: int, complete: bool, fifo: bool, changing: bool
) -> None:
    """Raise ``Refused`` if the algorithm's assumptions do not hold in this set-up."""
    name = algorithm.name
    if permits < 1:
        raise Refused(f"There must be at least one permit: use {setting('permits')} 1 or more.")
    if several(permits) and not algorithm.serves.kinds:
        able = ", ".join(entry.name for entry in ALGORITHMS.values() if entry.serves.kinds)
        raise Refused(
            f"{name} grants permits of one kind: use {setting('permits')} with one number, or an "
            f"algorithm for several kinds: {able}."
        )
    if several(max(want, permits)) and not fits(want, permits):
        raise Refused(
            f"A request for more permits of a kind than there are, or will be, can never be "
            f"granted: lower {setting('want')} or raise {setting('permits')}."
        )
    if not fits(want, permits):
        raise Refused(
            f"A request for {want} of {permits} permits can never be granted: lower "
            f"{setting('want')} or raise {setting('permits')}."
        )
    if algorithm.problem == "mutex" and permits != 1:
        raise Refused(
            f"{name} shares one permit, not {permits}: use {setting('permits')} 1, or an algorithm "
            f"for h out of k such as jiang."
        )
    if algorithm.problem == "k" and want != 1:
        raise Refused(f"{name} grants one permit at a time, not {want}: use {setting('want')} 1.")
    if algorithm.assumes.complete_graph and not complete:
        raise Refused(f"{name} sends to all nodes directly: use {setting('topology')} complete.")
    if algorithm.assumes.fifo and not fifo:
        raise Refused(f"{name} needs links that keep the order: use {setting('links')} fifo.")
    if changing and not algorithm.assumes.changing_links:
        raise Refused(
            f"{name} is for networks that do not change: use {setting('mobility')} none, or an "
            f"algorithm for changing links such as jiang."
        )
