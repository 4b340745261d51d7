"""The docstrings of public functions of `actors`, `fsm` and `spark` name arguments and errors.

The help texts of commands are docstrings for users; they have no such sections.
`tests/actors/embedding/test_docstrings.py` also requires of each awaited function of the API
a sentence about cancellation.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("actors", "fsm", "spark")
COMMANDS = {"commands", "__main__.py"}
FILES = {
    package: [
        path
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.relative_to(ROOT).parts[1] not in COMMANDS
    ]
    for package in PACKAGES
}
INHERITED = {"override", "overload"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def public_functions(body: Iterable[ast.stmt], owner: str = "") -> Iterator[tuple[str, Function]]:
    for one in body:
        if isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
            yield from public_functions(one.body, f"{one.name}.")
        elif isinstance(one, Function) and not one.name.startswith("_"):
            yield f"{owner}{one.name}", one


def lacks(function: Function) -> Iterator[str]:
    text = ast.get_docstring(function) or ""
    args = function.args
    names = [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    wanted = [name for name in names if name not in {"self", "cls"} and not name.startswith("_")]
    if len(wanted) > 1:
        yield from (name for name in wanted if f"\n    {name}: " not in text)
    for error in sorted(raised(function)):
        if "Raises:\n" not in text or (error and f"\n    {error}: " not in text):
            yield f"Raises {error}"


def raised(function: Function) -> set[str]:
    """Return the classes that a function itself raises; "" for an error made elsewhere."""
    raises = (node for node in nodes(function.body) if isinstance(node, ast.Raise) and node.exc)
    made = (node.exc.func if isinstance(node.exc, ast.Call) else node.exc for node in raises)
    names = (getattr(one, "attr", getattr(one, "id", "")) for one in made)
    return {name if name[:1].isupper() else "" for name in names}


def nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a body, without those of inner functions and classes."""
    for one in body:
        yield one
        if not isinstance(one, Function | ast.Lambda | ast.ClassDef):
            yield from nodes(ast.iter_child_nodes(one))


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_name_arguments_and_errors(package):
    lacking = [
        f"{path.relative_to(ROOT)}:{function.lineno} {name} lacks {lack}"
        for path in FILES[package]
        for name, function in public_functions(ast.parse(path.read_text()).body)
        if not INHERITED & {ast.unparse(one) for one in function.decorator_list}
        for lack in lacks(function)
    ]
    assert lacking == []


@pytest.mark.parametrize(
    ("source", "lack"),
    [
        ("async def f(a, b):\n    '''F.'''", ["a", "b"]),
        ("def f(a, _):\n    '''F.'''", []),
        (
            "def f():\n    '''F.\n\n    Raises:\n        KeyError: No.\n    '''\n    raise OSError",
            1,
        ),
        ("def f():\n    '''F.'''\n    raise made()", ["Raises "]),
        ("def f():\n    '''F.'''\n    def g():\n        raise OSError", []),
        ("async def f():\n    '''F.'''\n    raise errors.OtherError(1)", ["Raises OtherError"]),
    ],
)
def test_an_incomplete_docstring_is_found(source, lack):
    ((_, function),) = public_functions(ast.parse(source).body)
    found = list(lacks(function))
    assert found == lack or len(found) == lack
