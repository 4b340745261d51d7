"""What the pages of the reference say of attrs classes and of enumerations, beside docstrings."""

import ast
from typing import Any

from griffe import (
    Attribute,
    Class,
    Docstring,
    Expr,
    Extension,
    Function,
    Parameter,
    ParameterKind,
    Parameters,
)

_FIELD = ("attrs.field(", "attrs.Factory(")


class ShownClasses(Extension):
    """Gives attrs classes the `__init__` of their run time, and lists members of enumerations."""

    def on_class_members(self, *, cls: Class, **kwargs: Any) -> None:
        """Add them to a class that has none of its own."""
        del kwargs
        if any(str(base).endswith("Enum") for base in cls.bases):
            _list_members(cls)
        made = [str(one.value) for one in cls.decorators if str(one.value).startswith("attrs.")]
        if not made or "__init__" in cls.members:
            return
        is_keyword = "kw_only=True" in made[0]
        fields = [one for one in cls.members.values() if isinstance(one, Attribute)]
        given = [_parameter(one, is_keyword=is_keyword) for one in fields if _is_field(one)]
        parameters = Parameters(Parameter("self"), *(one for one in given if one is not None))
        cls.set_member("__init__", Function("__init__", parameters=parameters, parent=cls))


def _list_members(cls: Class) -> None:
    """Put the members into the docstring of the class: most have none of their own."""
    found = [one for one in cls.members.values() if isinstance(one, Attribute)]
    members = [one for one in found if one.name.isupper() and "property" not in one.labels]
    lines = []
    for one in members:
        said = " ".join(one.docstring.value.split()) if one.docstring else ""
        lines.append(f"    {one.name}: `{one.value}`" + (f": {said}" if said else ""))
        cls.del_member(one.name)
    said = cls.docstring.value if cls.docstring else ""
    cls.docstring = Docstring(f"{said}\n\nAttributes:\n" + "\n".join(lines), parent=cls)


def _is_field(one: Attribute) -> bool:
    is_value = "property" not in one.labels and "ClassVar" not in str(one.annotation)
    return is_value and one.annotation is not None


def _parameter(one: Attribute, *, is_keyword: bool) -> Parameter | None:
    default: str | Expr | None = one.value
    text = "" if default is None else str(default)
    if text.startswith(_FIELD):
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call)  # noqa: S101 - the text begins so
        words = {word.arg: ast.unparse(word.value) for word in call.keywords}
        if words.get("init") == "False":
            return None
        is_keyword = is_keyword or words.get("kw_only") == "True"
        default = words.get("default") or ("..." if "factory" in words else None)
    kind = ParameterKind.keyword_only if is_keyword else ParameterKind.positional_or_keyword
    return Parameter(one.name.lstrip("_"), annotation=one.annotation, kind=kind, default=default)
