"""The docstrings of public functions of `fsm` and `spark` name arguments and errors.

The help texts of commands are docstrings for users; they have no such sections.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMANDS = {"commands", "__main__.py"}
FILES = [
    path
    for package in ("fsm", "spark")
    for path in sorted((ROOT / package).rglob("*.py"))
    if path.relative_to(ROOT).parts[1] not in COMMANDS
]
INHERITED = {"override", "overload"}


def public_functions(body, owner="") -> Iterator[tuple[str, ast.FunctionDef]]:
    for one in body:
        if isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
            yield from public_functions(one.body, f"{one.name}.")
        elif isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            yield f"{owner}{one.name}", one


def lacks(function: ast.FunctionDef) -> Iterator[str]:
    text = ast.get_docstring(function) or ""
    names = [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
    wanted = [name for name in names if name not in {"self", "cls"}]
    if len(wanted) > 1:
        yield from (name for name in wanted if f"\n    {name}: " not in text)
    if "Raises" not in text and any(map(is_raise, ast.walk(function))):
        yield "Raises"


def is_raise(node: ast.AST) -> bool:
    return isinstance(node, ast.Raise) and node.exc is not None


@pytest.mark.parametrize("package", ["fsm", "spark"])
def test_docstrings_name_arguments_and_errors(package):
    lacking = [
        f"{path.relative_to(ROOT)}:{function.lineno} {name} lacks {lack}"
        for path in FILES
        if path.is_relative_to(ROOT / package)
        for name, function in public_functions(ast.parse(path.read_text()).body)
        if not INHERITED & {ast.unparse(one) for one in function.decorator_list}
        for lack in lacks(function)
    ]
    assert lacking == []
