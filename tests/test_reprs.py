"""Fields that may have a secret are in no repr: exceptions and logs show these."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("actors", "fsm", "specs", "transports")
SECRETS = {"token", "secret", "assertion", "refresh", "password", "private"}
ELSEWHERE = {"actors/play", "fsm/product"}
"""Scenarios and models have no secrets."""

TEXTS = {"str", "bytes", "str | None", "bytes | None"}


def is_hidden(field):
    """Say whether a field is `attrs.field(..., repr=False)`."""
    return isinstance(field.value, ast.Call) and any(
        one.arg == "repr" and isinstance(one.value, ast.Constant) and one.value.value is False
        for one in field.value.keywords
    )


def product():
    """Yield the files of the product that may have to do with secrets."""
    for name in PACKAGES:
        for file in (ROOT / name).rglob("*.py"):
            if not any(str(file.relative_to(ROOT)).startswith(one) for one in ELSEWHERE):
                yield file


def fields():
    """Yield each field of a class that is of attrs, with its place."""
    for file in product():
        for made in ast.walk(ast.parse(file.read_text())):
            if isinstance(made, ast.ClassDef) and any(
                ast.unparse(one).startswith("attrs.") for one in made.decorator_list
            ):
                for field in made.body:
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                        yield f"{file.relative_to(ROOT)}:{made.name}", field


def test_secrets_are_in_no_repr():
    """SEC-41."""
    shown, hidden = [], 0
    for where, field in fields():
        name, kind = field.target.id.strip("_"), ast.unparse(field.annotation)
        if name in SECRETS and kind in TEXTS:
            hidden += is_hidden(field)
            if not is_hidden(field):
                shown.append(f"{where}.{name}")
    assert shown == []
    assert hidden
