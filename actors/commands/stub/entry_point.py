"""Whether a package defines its entry point, as its sources say; nothing of it is run."""

import ast
import io
import symtable
import warnings
import zipfile
from symtable import Symbol, SymbolTable
from typing import Final

from actors.catalogue.errors import BadArchiveError

_UNREADABLE: Final = (SyntaxError, ValueError, RecursionError, MemoryError)


def check_entry_point(archive: bytes, entry_point: str, *, is_class: bool) -> None:
    """Refuse a package whose module does not define what the entry point names.

    What the module assigns or imports may be anything, and a name may come by `import *` or by
    `global`: whether that is of use shows in the sandbox only.

    Args:
        archive: Bytes of the package, which has the module.
        entry_point: `module:name`.
        is_class: Whether it must be a class.

    Raises:
        BadArchiveError: The module cannot be compiled, or it does not define the name, or
            defines a function where a class is needed.
    """
    module, _, name = entry_point.partition(":")
    path, source = _source(archive, module.replace(".", "/"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, path)
            table = symtable.symtable(source.decode("utf-8-sig"), path, "exec")
    except _UNREADABLE as exc:
        raise BadArchiveError(f"has a file {path!r} that Python cannot compile: {exc}") from exc
    symbol = _bound(table, name)
    if symbol is None and not _may_come(tree, name):
        raise BadArchiveError(f"has no {name!r} in its module {module!r} for its entry point")
    if symbol is not None and is_class and _is_function(symbol, tree):
        raise BadArchiveError(f"has a function as its entry point {entry_point!r}, and no class")


def _source(archive: bytes, base: str) -> tuple[str, bytes]:
    """Return the file of a module that is there; a folder hides a file, as in a sandbox."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        names = opened.namelist()
        path = next(one for one in (f"{base}/__init__.py", f"{base}.py") if one in names)
        return path, opened.read(path)


def _bound(table: SymbolTable, name: str) -> Symbol | None:
    symbol = table.lookup(name) if name in table.get_identifiers() else None
    return symbol if symbol and (symbol.is_assigned() or symbol.is_imported()) else None


def _may_come(tree: ast.Module, name: str) -> bool:
    """Return whether a name may be bound when the module runs: by `import *`, or a function."""
    return any(
        (isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names))
        or (isinstance(node, ast.Global) and name in node.names)
        for node in ast.walk(tree)
    )


def _is_function(symbol: Symbol, tree: ast.Module) -> bool:
    """Return whether a name is of a function and of nothing else; decorators make anything."""
    name = symbol.get_name()
    if symbol.is_imported() or any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(tree)
    ):
        return False
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [node for node in ast.walk(tree) if isinstance(node, kinds) and node.name == name]
    return bool(found) and not any(
        isinstance(node, ast.ClassDef) or node.decorator_list for node in found
    )
