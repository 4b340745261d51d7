"""What a Python source mentions, read from its syntax tree; nothing is imported or run."""

import ast
from collections.abc import Iterator
from enum import StrEnum
from typing import TypeAlias

__all__ = ["dotted", "mentions"]

_Names: TypeAlias = dict[str, str]


def mentions(source: str) -> frozenset[str]:
    """Return the dotted names that a source uses, spelled out from where they are defined.

    After `from fsm.machines.session import Trigger as T`, a use of `T.CLOSE` is
    `fsm.machines.session.Trigger.CLOSE`. What a comment, a text or an import alone
    names is no use.

    Raises:
        SyntaxError: The source is no Python.
    """
    tree = ast.parse(source)
    imported: _Names = {}
    for node in ast.walk(tree):
        imported |= _imported(node)
    used = (_spelled_out(node, imported) for node in ast.walk(tree))
    return frozenset(name for name in used if name)


def dotted(member: StrEnum) -> str:
    """The name by which `mentions` tells of an enum's member."""
    return f"{type(member).__module__}.{type(member).__qualname__}.{member.name}"


def _imported(node: ast.AST) -> _Names:
    match node:
        case ast.ImportFrom(module=str(module), names=names):
            return {one.asname or one.name: f"{module}.{one.name}" for one in names}
        case ast.Import(names=names):
            return dict(_bound(one) for one in names)
        case _:
            return {}


def _bound(name: ast.alias) -> tuple[str, str]:
    # `import a.b` binds `a`; `import a.b as c` binds all of it.
    root = name.name.partition(".")[0]
    return (name.asname, name.name) if name.asname else (root, root)


def _spelled_out(node: ast.AST, imported: _Names) -> str:
    if not isinstance(node, ast.Attribute):
        return ""
    root, *rest = _parts(node)
    return ".".join((imported[root], *rest)) if root in imported else ""


def _parts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Attribute(value=value, attr=attr):
            yield from _parts(value)
            yield attr
        case ast.Name(id=name):
            yield name
        case _:
            yield ""  # the result of a call or the like: nothing that was imported
