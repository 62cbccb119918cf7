"""meshlock mutants: algorithms with a mistake, and how other commands choose one."""

from __future__ import annotations

from typing import Annotated

from meshlock.cli import completion
from meshlock.cli.flags import Argument, Option

Mutant = Annotated[
    str | None,
    Option(
        "--mutant",
        help="Run this mutant, an algorithm with one mistake (see 'meshlock mutants').",
        complete=completion.mutants,
    ),
]
Without = Annotated[
    list[str] | None,
    Option(
        "--without", help="Undo repairs of jiang: R1 to R11, such as R4 or R4,R10. May be repeated."
    ),
]


def mutants(
    name: Annotated[
        str | None,
        Argument(help="Print the diff of this mutant.", complete=completion.mutants),
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the mutants: algorithms with one mistake each, and what the mistake breaks.

    Example: meshlock mutants raymond/keeps-and-sends
    """
    from meshlock.algorithms.mutants import catalogue
    from meshlock.cli.output import print_columns, print_json

    every = catalogue.MUTANTS.values()
    if json:
        listed = [
            {
                "name": mutant.name,
                "algorithm": mutant.origin.name,
                "sentence": mutant.mistake,
                "property": mutant.breaks or None,
                "steps": mutant.steps or None,
                "check": mutant.command(),
            }
            for mutant in (every if name is None else [catalogue.mutant(name)])
        ]
        print_json(listed if name is None else {**listed[0], "diff": catalogue.mutant(name).diff()})
        return
    if name is not None:
        one = catalogue.mutant(name)
        print(f"{one.mistake}\n\n{one.command()}\n\n{one.diff()}", end="")
        return
    rows = [("name", "breaks", "in steps", "mistake")]
    for mutant in every:
        steps = str(mutant.steps) if mutant.steps else ""
        rows.append((mutant.name, mutant.breaks or "nothing", steps, mutant.mistake))
    print_columns(rows)


def chosen(algorithm: str | None, mutant: str | None, without: list[str] | None) -> str | None:
    """The name of the algorithm to run, if any of the three flags says it."""
    if mutant is None and without is None:
        from meshlock.algorithms.outside import load

        return algorithm if algorithm is None else load(algorithm)
    from meshlock.algorithms.mutants import catalogue
    from meshlock.errors import Refused

    if mutant is not None and without is not None:
        raise Refused("Choose one of --mutant and --without.")
    if mutant is not None:
        found = catalogue.mutant(mutant)
        if algorithm not in (None, found.origin.name, found.name):
            raise Refused(
                f"--mutant {mutant} is a mutant of {found.origin.name}, not of {algorithm}: "
                f"leave out --algorithm."
            )
        return found.name
    if algorithm not in (None, "jiang"):
        raise Refused(
            f"--without undoes repairs of jiang, and {algorithm} is another algorithm: use "
            f"--algorithm jiang, or leave out --without."
        )
    rules = [rule.strip().upper() for text in without or [] for rule in text.split(",")]
    return catalogue.mutant(catalogue.PREFIX + "+".join(rules)).name
