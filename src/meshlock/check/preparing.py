"""A check as a person asks for it, ready to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from meshlock.check.arguments import judged, refuse_unjudged, setup, with_own
from meshlock.check.mutants import properties_of, words_of
from meshlock.check.settings import SearchSettings
from meshlock.check.unspent import refuse_vacuous
from meshlock.check.verdict import Checking
from meshlock.properties.own import OwnProperty, own_names


def prepared(
    algorithm: str | None,
    given: dict[str, Any],
    properties: Sequence[str | OwnProperty],
    search: SearchSettings,
    has_mistake: bool,
) -> Checking:
    """``given``: fields of :class:`CheckSettings` and :class:`FaultSettings`. An algorithm that
    ``has_mistake`` has a small set-up of its own, in which that shows."""
    search.refuse_wrong()
    words: dict[str, Any] = {"algorithm": algorithm or "raymond"}
    wanted = list(properties)
    if has_mistake and not {"nodes", "topology", "requests"} & given.keys():
        words, to_be_named = small_set_up(words["algorithm"])
        wanted = wanted or list(to_be_named)
    options = {**words.get("options", {}), **given.get("options", {})}
    what = setup(**{**words, **given, "options": options})
    names = with_own(what, wanted)
    refuse_unjudged(what, names, search.reduction)
    refuse_vacuous(what, names)
    by = "symmetry" if search.symmetry else search.reduction
    to_judge = judged(names, own_names(what.algorithm))
    return Checking(what, to_judge, search.max_states, by, search.workers, search.space())


def small_set_up(name: str) -> tuple[dict[str, Any], list[str]]:
    """A mutant's own, and the properties to be named."""
    from meshlock.algorithms.mutants.catalogue import mutant

    found = mutant(name)
    return words_of(found, found.algorithm), properties_of(found)
