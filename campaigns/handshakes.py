"""Does the checker lose mistakes where HELLO, LINK, ASK and COPY arrive at once?

    python campaigns/handshakes.py [--most N] [--inside NAME] [--only NAME]

Every mutant of recovery in its own small set-up, with handshakes that arrive at once and with
handshakes that may be late: what is found, and in how many steps. With ``--inside`` the mistake is
made around that algorithm instead of its own (without the steps of the lead, which are of its own
algorithm).
"""

from __future__ import annotations

import argparse
from time import process_time
from typing import Any

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.check.arguments import judged, setup
from meshlock.check.mutants import words_of
from meshlock.check.setup import SetUp
from meshlock.check.verdict import Checking
from meshlock.errors import Refused

MOST = 300_000


def setup_around(mutant: Mutant, inside: str, handshakes: str) -> SetUp:
    """The mutant's own set-up, or the same with another algorithm inside."""
    words: dict[str, Any] = words_of(mutant, mutant.algorithm) | {"handshakes": handshakes}
    if not inside:
        return setup(**words)
    words.pop("lead", None)
    what = setup(**words | {"algorithm": inside, "links": "fifo"})
    around = Mutant(mutant.name, mutant.mistake, mutant.patch, mutant.case, algorithm=inside)
    what.algorithm = around.algorithm
    return what


def look(what: SetUp, lead: int, most: int) -> str:
    """The first that is found, or how much was seen in vain."""
    check = Checking(what, judged([]), most)
    while not check.explorer.violations and check.run(1):
        pass
    for way in check.violations():
        return f"{way.name} in {lead + len(way.labels)}"
    return f"nothing in {'all ' if check.complete() else ''}{check.explorer.count():,}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--most", type=int, default=MOST, help="states of a search")
    parser.add_argument("--inside", default="", help="the algorithm inside")
    parser.add_argument("--only", action="append", default=[], help="this mutant; repeat")
    asked = parser.parse_args()
    print("| mutant | at once | late | CPU s |\n|---|---|---|---|")
    for mutant in MUTANTS.values():
        name = mutant.name.partition("/")[2]
        if not mutant.in_recovery or (asked.only and name not in asked.only):
            continue
        began = process_time()
        lead = 0 if asked.inside else len(mutant.case.get("lead", []))
        found: list[str] = []
        for handshakes in ("eager", "any"):
            try:
                what = setup_around(mutant, asked.inside, handshakes)
                found.append(look(what, lead, asked.most))
            except (Refused, AssertionError):
                found.append("not possible")
        print(
            f"| {name} | {found[0]} | {found[1]} | {process_time() - began:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
