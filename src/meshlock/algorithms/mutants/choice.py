"""Which algorithm a person means: by its name, a file, a mutant or repairs undone."""

from __future__ import annotations

from meshlock.errors import Refused, setting


def chosen(algorithm: str | None, mutant: str | None, without: tuple[str, ...]) -> str | None:
    """The name of the algorithm to run, if any of the three says it."""
    if mutant is None and not without:
        from meshlock.algorithms.outside import load

        return algorithm if algorithm is None else load(algorithm)
    from meshlock.algorithms.mutants import catalogue

    if mutant is not None and without:
        raise Refused(f"Choose one of {setting('mutant')} and {setting('without')}.")
    if mutant is not None:
        found = catalogue.mutant(mutant)
        if algorithm not in (None, found.origin.name, found.name):
            raise Refused(
                f"{setting('mutant')} {mutant} is a mutant of {found.origin.name}, not of "
                f"{algorithm}: leave out {setting('algorithm')}."
            )
        return found.name
    if algorithm not in (None, "jiang"):
        raise Refused(
            f"{setting('without')} undoes repairs of jiang, and {algorithm} is another algorithm: "
            f"use {setting('algorithm')} jiang, or leave out {setting('without')}."
        )
    rules = [rule.strip().upper() for text in without for rule in text.split(",")]
    return catalogue.mutant(catalogue.PREFIX + "+".join(rules)).name
