"""The docstrings of the embedding API say what a caller has to know."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module

_OURS = frozenset({"actors", "fsm", "specs", "transports"})

_MODULES = (
    "actors",
    "actors.embedded_node",
    "actors.embedding",
    "actors.hyperties",
    "actors.testing.recorder",
    "actors.testing.domains",
    "actors.testing.plugin",
    "actors.testing.recorder",
)


def test_public_docstrings_say_arguments_errors_and_what_a_cancellation_leaves():
    lacking = [
        f"{name}: {lack}"
        for module in map(import_module, _MODULES)
        for exported in module.__all__
        for name, function in _functions(exported, getattr(module, exported))
        for lack in _lacks(function)
    ]
    assert not lacking, "\n".join(["docstrings are incomplete:", *lacking])


def _functions(name: str, exported: object) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the public functions of an exported name, those of its base classes, too."""
    if not inspect.isclass(exported):
        exported = inspect.unwrap(exported) if callable(exported) else exported
        if inspect.isfunction(exported):
            yield name, exported
        return
    for member, found in inspect.getmembers(exported, inspect.isroutine):
        is_public = not member.startswith("_") or member == "__call__"
        function = inspect.unwrap(found)
        module = getattr(function, "__module__", None) or ""
        if is_public and module.partition(".")[0] in _OURS:
            yield f"{name}.{member}", found


def _lacks(found: Callable[..., object]) -> Iterator[str]:
    text, function = inspect.getdoc(found) or "", inspect.unwrap(found)
    wanted = [one for one in inspect.signature(function).parameters if one not in {"self", "cls"}]
    if len(wanted) > 1:
        yield from _missing("Args", wanted, _section(text, "Args"))
    yield from _missing("Raises", sorted(_raised(function)), _section(text, "Raises"))
    if _is_awaited(function) and "cancelled" not in text:
        yield "no sentence says what is left 'if cancelled'"


def _missing(section: str, wanted: list[str], there: str) -> Iterator[str]:
    lines = [line.strip() for line in there.splitlines()]
    for name in wanted:
        if not any(line.startswith(f"{name}:") for line in lines):
            yield f"{section} lacks {name}"


def _section(text: str, title: str) -> str:
    """Return the indented lines below a heading of a docstring."""
    _, _, rest = f"\n{text}".partition(f"\n{title}:\n")
    inside = []
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            break
        inside.append(line)
    return "\n".join(inside)


def _raised(function: Callable[..., object]) -> set[str]:
    """Return the names of exceptions that the body of a function raises itself."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    raised = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise))
    calls = (exc.func if isinstance(exc, ast.Call) else exc for exc in raised)
    return {one.id for one in calls if isinstance(one, ast.Name) and one.id[0].isupper()}


def _is_awaited(function: Callable[..., object]) -> bool:
    """Say whether a call is awaited, or entered by `async with`."""
    is_context = "AsyncContextManager" in str(inspect.signature(function).return_annotation)
    return (
        is_context or inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    )
