"""Write the appendices that the code makes: ``make reference``, as for the reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from meshlock.algorithms.mutants.catalogue import MUTANTS, REPAIRS
from meshlock.algorithms.mutants.mutant import Mutant

MUTANTS_HEAD = """\
Each mutant is an algorithm with one plausible mistake: a patch of a few lines in
[`src/meshlock/algorithms/mutants/`](../../src/meshlock/algorithms/mutants/).
The checker finds each of them. `meshlock mutants` lists them, and `meshlock mutants NAME` prints
the diff:

```console
$ meshlock mutants suzuki-kasami/forgets-newer-requests
the number of a late REQUEST replaces a higher one that came before it
...
-            self.asked[site] = max(self.asked[site], message.number)
+            self.asked[site] = message.number
...
```

`--mutant NAME` runs one:

<!-- exits: 1 1 1 -->
```console
$ meshlock check --mutant jiang/j1-forgets-itself    # in its own small set-up
$ meshlock scenario J3 --mutant jiang/j3-keeps-its-own-urgency-to-itself
$ meshlock simulate --mutant raymond/keeps-and-sends --topology tree --nodes 7
```

The steps are those of the shortest counterexample. The original algorithm holds in the same set-up.
What breaks when the numbered repairs of `jiang` are undone (`--without R4`) is in
[repairs, undone one by one](../algorithms/what-is-wrong.md#repairs-undone-one-by-one).

| property | violated when |
|---|---|
| served | a request waits and nothing more can happen |
| one-token, conservation | a handler made or lost a token or a permit |
| safety | more permits are in use than there are, or a client enters that had not asked |
| order, ties | a request enters before a more urgent one, or before an earlier equal one |
| liveness | a request can wait forever while others enter; steps: the path and the cycle |
| neighbours | a handler sent to a node to which it has no link |
| downhill, reaches-token, oriented, scheme-1 to 3 | an invariant of the paper does not hold |"""

RECOVERY_HEAD = """\
Each of these undoes one rule of [recovery](../how-it-works/recovery.md). The layer has
the mistake, not the algorithm inside. Where the counterexample is long, its first steps are given
(`--lead`), and the steps count them too.

| property | violated when |
|---|---|
| one-token | two tokens can be used |
| ledger | the usable token's ledger does not name a grant under a valid lease |
| fences | a fence is not above all fences before it |
| conservation | free permits and ledger do not add up to k |
| served | faults have stopped, and a request waits forever or permits do not return |"""


def rows(mutants: Iterable[Mutant]) -> str:
    found = [
        f"| {mutant.name} | {mutant.mistake} | {mutant.breaks} | {mutant.steps} |"
        for mutant in mutants
    ]
    return "\n".join(["| mutant | mistake | property | steps |", "|---|---|---|---|", *found])


def mutants() -> Iterator[str]:
    listed = [mutant for mutant in MUTANTS.values() if mutant not in REPAIRS.values()]
    yield "# Mutants"
    yield MUTANTS_HEAD
    yield "## Algorithms"
    yield rows(mutant for mutant in listed if not mutant.in_recovery)
    yield "## Recovery"
    yield RECOVERY_HEAD
    yield rows(mutant for mutant in listed if mutant.in_recovery)
