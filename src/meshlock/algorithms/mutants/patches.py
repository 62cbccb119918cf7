"""Patches of the source of algorithms, and the patched source as modules of its own.

A patch has one hunk or more. A hunk begins with ``@@ FILE``, or with ``@@`` for the file of the
hunk before. Its lines are those of a diff: a line with ``-`` goes, one with ``+`` comes, one with a
space stays. What goes and what stays must be in the file exactly once.

A patch runs few statements: those that it changes, and those that mention a name which it changes,
in the patched module and in modules that import from it. Everything else is the real module's, and
the real modules stay as they are. So a patch works beside compiled modules, too; what it runs is
interpreted. A class that is marked as open to subclasses is extended by its changed methods: where
the real class is expected, the patched one is accepted. Any other class is made anew.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import sys
from collections.abc import Iterable
from copy import copy, deepcopy
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

PACKAGE = "meshlock.algorithms"
FOLDER = Path(__file__).parents[3]


class Hunk(NamedTuple):
    file: str  # below the package
    old: str
    new: str


def hunks(patch: str) -> list[Hunk]:
    found: list[Hunk] = []
    file = ""
    for part in f"\n{patch.strip(chr(10))}".split("\n@@")[1:]:
        name, *lines = part.split("\n")
        file = name.strip() or file
        old = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "+")
        new = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "-")
        found.append(Hunk(file, old, new))
    return found


def path_of(module: str) -> Path:
    return FOLDER / f"{module.replace('.', '/')}.py"


@cache
def text_of(module: str) -> str:
    """The source of a module; a compiled one has it beside itself."""
    return path_of(module).read_text(encoding="utf-8")


class Statement(NamedTuple):
    part: ast.stmt
    text: str
    names: set[str]  # those that it defines or mentions


def statements(
    parts: list[ast.stmt], text: str, known: Iterable[Statement] = ()
) -> list[Statement]:
    """The parts of this text; names of those that are ``known`` are not looked for again."""
    lines, names = text.splitlines(), {one.text: one.names for one in known}
    found = []
    for part in parts:
        marks = part.decorator_list if isinstance(part, ast.ClassDef | ast.FunctionDef) else []
        first = min([part.lineno, *[mark.lineno for mark in marks]])
        own = "\n".join(lines[first - 1 : part.end_lineno])
        found.append(Statement(part, own, names.get(own) or defined(part) | mentioned(part)))
    return found


@cache
def real_statements(module: str) -> list[Statement]:
    text = text_of(module)
    return statements(ast.parse(text).body, text)


@cache
def real_body(module: str, name: str) -> list[Statement]:
    """The statements of a class."""
    parts = [one.part for one in real_statements(module)]
    (found,) = [one for one in parts if isinstance(one, ast.ClassDef) and one.name == name]
    return statements(found.body, text_of(module))


def applied(name: str, patch: str, package: str = PACKAGE) -> dict[str, str]:
    """The text of every module that the patch changes. Its files are named below ``package``."""
    texts: dict[str, str] = {}
    for hunk in hunks(patch):
        module = f"{package}.{hunk.file.removesuffix('.py').replace('/', '.')}"
        text = "\n" + texts.get(module, text_of(module))
        count = text.count("\n" + hunk.old) if hunk.old else 0
        if count != 1:
            raise ValueError(
                f"The patch of {name} does not fit {hunk.file}: this is there {count} times, not "
                f"once:\n{hunk.old}"
            )
        texts[module] = text.replace("\n" + hunk.old, "\n" + hunk.new)[1:]
    return texts


class Patched:
    """The modules that a patch changes, each made when it is asked for."""

    def __init__(self, name: str, patch: str) -> None:
        self.name = name
        self.texts = applied(name, patch)
        self.made: dict[str, Remade] = {}

    def module(self, name: str, *anew: str) -> ModuleType:
        """The module, with these names of it made anew in any case."""
        return self.remade(name, *anew).module

    def remade(self, name: str, *anew: str) -> Remade:
        if name not in self.made:
            self.made[name] = Remade(self, name, set(anew))
        return self.made[name]


class Remade:
    def __init__(self, patched: Patched, name: str, anew: set[str]) -> None:
        self.module = import_module(name)
        self.anew = anew  # names that do not mean what they mean in the real module
        self.extended: set[str] = set()  # those of them whose classes extend the real ones
        self.text = patched.texts.get(name, "")
        every = real_statements(name)
        if self.text:
            every = statements(ast.parse(self.text).body, self.text, every)
        imported: dict[str, object] = {}
        for part, _, _ in every:
            if isinstance(part, ast.ImportFrom) and (part.module or "").startswith(f"{PACKAGE}."):
                other = patched.remade(part.module or "")
                for alias in part.names:
                    if alias.name in other.anew:
                        bound = alias.asname or alias.name
                        imported[bound] = getattr(other.module, alias.name)
                        if alias.name in other.extended:
                            self.extended.add(bound)
        self.anew |= set(imported)
        parts = self.changed(name, every)
        if self.anew or parts:
            self.run(patched.name, imported, parts)

    def changed(self, name: str, every: list[Statement]) -> list[ast.stmt]:
        """The statements to be run again: those that are new, and those that mention what is."""
        old = {one.text for one in real_statements(name)}
        every = [one for one in every if not isinstance(one.part, ast.Import | ast.ImportFrom)]
        found: list[Statement] = []
        while True:
            now = [
                one for one in every if one.text not in old or not self.anew.isdisjoint(one.names)
            ]
            if len(now) == len(found):
                return [one.part for one in found]
            found = now
            self.anew |= defined(*[one.part for one in found])

    def run(self, mutant: str, imported: dict[str, object], parts: list[ast.stmt]) -> None:
        """Into a module that has all else of the real one. A debugger finds its text."""
        real = self.module
        title = mutant.replace("/", ":")
        text = self.text or text_of(real.__name__)
        file = f"{path_of(real.__name__)} {title}"
        self.module = ModuleType(f"{real.__name__} {title}")
        self.module.__dict__.update({**vars(real), **imported})
        self.module.__name__ = f"{real.__name__} {title}"
        self.module.__file__ = file
        sys.modules[self.module.__name__] = self.module
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        body = [self.extension(part, real) for part in parts]
        tree = ast.fix_missing_locations(ast.Module(body, []))
        code = compile(tree, file, "exec", __future__.annotations.compiler_flag, dont_inherit=True)
        exec(code, self.module.__dict__)

    def extension(self, part: ast.stmt, real: ModuleType) -> ast.stmt:
        """A class that may be extended, as an extension of the real one; all else as it is."""
        if not isinstance(part, ast.ClassDef) or not is_open(part) or not hasattr(real, part.name):
            return part
        bases = [base for base in part.bases if not self.anew.isdisjoint(mentioned(base))]
        if not all(mentioned(base) <= self.extended for base in bases):
            return part
        before = real_body(real.__name__, part.name)
        missing = defined(*[one.part for one in before]) - defined(*part.body)
        assert not missing, f"A patch cannot remove {missing} of {part.name}."
        old = {one.text for one in before}
        origin = f"original_{part.name}"
        self.module.__dict__[origin] = getattr(real, part.name)
        self.extended.add(part.name)
        body: list[ast.stmt] = []
        for one in statements(part.body, self.text or text_of(real.__name__), before):
            new = one.text not in old or not self.anew.isdisjoint(one.names)
            if new or (bases and "super" in one.names):
                body.append(Super(origin).visit(deepcopy(one.part)))
        extended = copy(part)
        extended.bases = [ast.Name(origin, ast.Load()), *bases]
        extended.body = body or [ast.Pass()]
        return extended


class Super(ast.NodeTransformer):
    """In an extension, ``super()`` means what is above the real class."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.me = ""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.me = node.args.args[0].arg
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            node.args = [ast.Name(name, ast.Load()) for name in (self.origin, self.me)]
        return self.generic_visit(node)


def is_open(part: ast.ClassDef) -> bool:
    return any("allow_interpreted_subclasses" in ast.dump(each) for each in part.decorator_list)


def defined(*parts: ast.stmt) -> set[str]:
    """The names that these statements give a meaning."""
    names: set[str] = set()
    for part in parts:
        if isinstance(part, ast.ClassDef | ast.FunctionDef):
            names.add(part.name)
        elif isinstance(part, ast.Assign | ast.AnnAssign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            found = [one for target in targets for one in ast.walk(target)]
            names |= {one.id for one in found if isinstance(one, ast.Name)}
    return names


def mentioned(part: ast.AST) -> set[str]:
    """The names that occur in it, but for annotations, which nobody evaluates."""
    if isinstance(part, ast.Name):
        return {part.id}
    names: set[str] = set()
    for field, value in ast.iter_fields(part):
        if field not in ("annotation", "returns"):
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.AST):
                    names |= mentioned(one)
    return names
