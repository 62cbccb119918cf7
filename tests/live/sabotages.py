"""Live nodes with one rule undone: the judges of live nodes must notice each.

A sabotage is a patch of the source, as a mutant is. It changes functions of this process,
for every caller and by whatever name, and is undone at the end. So it may change what functions do,
and nothing else: no signature, no class, no constant. Those of recovery are the mutants of the
checker, in the real pool; the others, in ``sabotages.toml``, are mistakes in what carries the
algorithm: the pool's adapter, its disk, its clock, the links and the agent.
"""

from __future__ import annotations

import ast
import inspect
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.mutants.patches import PACKAGE, applied, text_of


class Sabotage(NamedTuple):
    """``test``: one that fails under it, where chaos and simulations do not notice it."""

    name: str
    what: str
    patch: str
    test: str = ""
    package: str = "meshlock"

    def texts(self) -> dict[str, str]:
        return applied(self.name, self.patch, self.package)

    def possible(self) -> bool:
        """Nothing in a compiled module can be changed."""
        return all(str(import_module(name).__file__).endswith(".py") for name in self.texts())

    def functions(self) -> list[tuple[FunctionType, CodeType]]:
        """Those that it changes, and what each does then."""
        found = []
        for name, text in self.texts().items():
            every = list(codes(compile(text, f"{name} with {self.name}", "exec")))
            for path in changed(ast.parse(text_of(name)), ast.parse(text)):
                (code,) = [code for code in every if code.co_qualname == path]
                found.append((function_at(import_module(name), path), code))
        return found


@contextmanager
def sabotaged(sabotage: Sabotage) -> Iterator[None]:
    assert sabotage.possible(), "it would change a compiled module"
    found = [(honest, honest.__code__, code) for honest, code in sabotage.functions()]
    try:
        for honest, _, code in found:
            honest.__code__ = code
        yield
    finally:
        for honest, before, _ in found:
            honest.__code__ = before


def changed(before: ast.Module | ast.ClassDef, after: ast.AST, path: str = "") -> Iterator[str]:
    """The functions that do something else afterwards, by their qualified names."""
    assert isinstance(after, ast.Module | ast.ClassDef)
    for old, new in zip(before.body, after.body, strict=True):
        if ast.dump(old) != ast.dump(new):
            assert head(old) == head(new), f"only functions can be changed, not {ast.unparse(old)}"
            if isinstance(old, ast.ClassDef):
                yield from changed(old, new, f"{path}{old.name}.")
            elif isinstance(old, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path + old.name


def head(part: ast.stmt) -> str:
    """All of a class or function but its body; all of any other statement."""
    part = copy(part)
    if isinstance(part, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        part.body = []
    return ast.dump(part)


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from codes(one)


def function_at(module: ModuleType, path: str) -> FunctionType:
    """The one that this process calls: what decorators have made of it calls it, too."""
    place: ModuleType | type = module
    *classes, name = path.split(".")
    for each in classes:
        place = getattr(place, each)
    found = vars(place)[name]
    found = inspect.unwrap(getattr(found, "fget", found))
    assert isinstance(found, FunctionType), f"{path} is no function, but {found}"
    return found


READ = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
AGENTS = [Sabotage(**one) for one in READ["agents"]]
NODES = [Sabotage(**one) for one in READ["nodes"]]
RECOVERY = [
    Sabotage(mutant.name, mutant.mistake, mutant.patch, package=PACKAGE)
    for mutant in MUTANTS.values()
    if mutant.in_recovery
]
SABOTAGES = {sabotage.name: sabotage for sabotage in AGENTS + NODES + RECOVERY}
