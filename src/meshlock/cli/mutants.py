"""meshlock mutants: algorithms with a mistake."""

from __future__ import annotations

from meshlock.cli.output import columns, report
from meshlock.settings import argument, option

MUTANT: str | None = option(
    None,
    "Run this mutant, an algorithm with one mistake (see 'meshlock mutants').",
    "--mutant",
)
WITHOUT: tuple[str, ...] = option(
    (), "Undo repairs of jiang: R1 to R11, such as R4 or R4,R10. May be repeated.", "--without"
)


def mutants(
    name: str | None = argument(None, "Print the diff of this mutant."),
    json: bool = option(False, "Print JSON."),
) -> None:
    """List the mutants: algorithms with one mistake each, and what the mistake breaks.

    Example: meshlock mutants raymond/keeps-and-sends
    """
    from meshlock.algorithms.mutants import catalogue
    from meshlock.check.mutants import command

    every = list(catalogue.MUTANTS.values()) if name is None else [catalogue.mutant(name)]
    listed = [
        {
            "name": mutant.name,
            "algorithm": mutant.origin.name,
            "sentence": mutant.mistake,
            "property": mutant.breaks or None,
            "steps": mutant.steps or None,
            "check": command(mutant),
        }
        for mutant in every
    ]
    if name is not None:
        one = every[0]
        record = {**listed[0], "diff": one.diff()}
        report(json, record, lambda: f"{one.mistake}\n\n{command(one)}\n\n{one.diff().rstrip()}")
        return
    rows = [("name", "breaks", "in steps", "mistake")]
    for mutant in every:
        steps = str(mutant.steps) if mutant.steps else ""
        rows.append((mutant.name, mutant.breaks or "nothing", steps, mutant.mistake))
    report(json, listed, lambda: columns(rows))
