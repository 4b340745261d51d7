"""Declaration of command-line options and arguments as parameters of functions, with their help."""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import partial
from inspect import cleandoc, signature
from operator import methodcaller
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, TypeAlias, get_args, get_origin

import attrs
import click

from specs.errors import ProtoflyError

FILE: Final = click.Path(dir_okay=False, path_type=Path)
"""Type of an option for a file; the command checks later whether the file can be used."""

HELP_OPTIONS: Final = {"help_option_names": ["-h", "--help"]}
"""Settings of the context of all commands and groups: a command keeps the first that it sees."""

FOLDER: Final = click.Path(file_okay=False, path_type=Path)
"""Type of an option for a directory."""

Maker: TypeAlias = Callable[..., Any]  # type: ignore[explicit-any] # each has its own options
"""Function that implements a command, or makes one value from several options."""

Read: TypeAlias = Callable[[Any], object]  # type: ignore[explicit-any] # a text or several
"""Function that converts a value; a `ProtoflyError`, `ValueError` or `BadParameter` refuses it."""

_GATHERED: Final[Mapping[object, Read | None]] = {
    tuple: None, dict: dict, Mapping: dict, frozenset: frozenset
}  # fmt: skip
"""Collection types of options that may be repeated, with the function that makes each."""

_METAVARS: Final[Mapping[object, str]] = {FILE: "FILE", FOLDER: "DIR"}

_SECTIONS: Final = re.compile(r"\n\n(?:Args|Raises):\n.*", re.DOTALL)

_DESCRIBED: Final = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def _descriptions(documented: object) -> dict[str, str]:
    """Return the descriptions of arguments or attributes in a docstring.

    The text after ` None: ` is left out, since it is about a value that no option has.
    """
    described = _DESCRIBED.findall(cleandoc(documented.__doc__ or ""))
    return {name: " ".join(text.split()).partition(" None: ")[0] for name, text in described}


def _parameter(  # type: ignore[explicit-any]  # noqa: PLR0913 - all that can be declared
    own_name: str,
    kind: object,
    default: object,
    description: str,
    /,
    *,
    is_argument: bool = False,
    text: str = "",
    name: str = "",
    flag: str = "",
    short: str = "",
    read: Read | None = None,
    gather: Read | None = None,
    members: Iterable[Enum] | None = None,
    **settings: Any,
) -> click.Parameter:
    name = name or own_name
    if isinstance(kind, UnionType):
        kind = next(each for each in get_args(kind) if each is not NoneType)
        default = None if default is attrs.NOTHING else default
    if (origin := get_origin(kind)) in _GATHERED:
        kind, gather = get_args(kind)[0], gather or _GATHERED[origin]
        if "nargs" not in settings:
            settings.setdefault("multiple", True)
    is_list = bool(settings.get("multiple")) or settings.get("nargs") == -1
    if kind is bool:
        settings["is_flag"] = True
    elif kind is Path:
        settings.setdefault("type", FILE)
    if not settings.keys() & {"default", "required", "is_flag"}:
        settings["required"] = default is attrs.NOTHING and not is_list
        if default is not attrs.NOTHING and isinstance(default, str | int | float | Enum):
            settings["default"] = default
    if read is None and isinstance(kind, type) and issubclass(kind, Enum):
        known = {str(each.value): each for each in members or kind}
        settings["type"], read = click.Choice(list(known)), known.__getitem__
        if "default" in settings:
            settings["default"] = settings["default"].value
    if read or gather:
        settings["callback"] = partial(_read, read, gather, is_list)
    if is_argument:
        return click.Argument([name], **settings)
    settings.setdefault("metavar", _METAVARS.get(settings.get("type")))
    flag = flag or f"--{name.replace('_', '-')}"
    flags = [short, flag] if short else [flag]
    return click.Option([name, *flags], help=text or description, **settings)


@attrs.frozen
class _Declared:  # type: ignore[explicit-any] # attrs, of the field
    """Declaration of an option or argument, apart from its name, type and description."""

    declared: Mapping[str, Any]  # type: ignore[explicit-any] # as there

    def parameter(
        self, name: str, kind: object, default: object, description: str
    ) -> click.Parameter:
        """Return the `click` parameter for the option or argument."""
        return _parameter(name, kind, default, description, **self.declared)


def option(metavar: str | None = None, **declared: Any) -> Any:  # type: ignore[explicit-any] # it stands where the value will be
    """Declare a parameter of a command, or of a function for `group`, as an option.

    The help is the parameter's description in the docstring. Everything in the annotation need not
    be declared: that it is required, a flag, a file, a choice or repeatable.

    Args:
        metavar: What stands for the value in the help.
        declared: `text`: the help, if no docstring has it. `name`: name of the option in a file, if
            it is not that of the parameter. `flag`: the option on the command line, if it is not
            named like this. `read`: reads a value, each of several. `gather`: makes one value of
            what was read. `members`: members of the enum that can be chosen, if not all. The others
            are what `click.Option` takes.
    """
    return _Declared(declared if metavar is None else {**declared, "metavar": metavar})


def argument(metavar: str | None = None, **declared: Any) -> Any:  # type: ignore[explicit-any] # as above
    """Declare a parameter of a command as an argument; see `option`."""
    return option(metavar, is_argument=True, **declared)


Make: TypeAlias = Callable[[Mapping[str, object]], object]


@attrs.frozen
class _Group:
    """Declaration of a value that is made from several options.

    Attributes:
        make: Makes the value.
        declarations: Name, type, default and declaration of each of its parameters.
        documented: The object whose docstring describes them.
    """

    make: Maker
    declarations: Iterable[tuple[str, object, object, object]]
    documented: object

    def compile(self) -> tuple[list[click.Parameter], Make]:
        """Return the `click` parameters of a group, and a function that makes its value."""
        parameters: list[click.Parameter] = []
        parts: dict[str, Make] = {}
        described = _descriptions(self.documented)
        for name, kind, default, declared in self.declarations:
            if isinstance(declared, _Group):
                inner, parts[name] = declared.compile()
                parameters += inner
            elif isinstance(declared, _Declared):
                parameters.append(declared.parameter(name, kind, default, described.get(name, "")))
                parts[name] = methodcaller("get", parameters[-1].name)
            else:  # the value of another option, if it exists
                parts[name] = methodcaller("get", name)

        def make(values: Mapping[str, object]) -> object:
            return self.make(**{name: part(values) for name, part in parts.items()})

        return parameters, make


def group(make: Maker) -> Any:  # type: ignore[explicit-any] # as `option`
    """Declare a parameter whose value is made by a function from several options.

    A parameter of `make` without a declaration has the value of another option of the command.
    """
    parameters = signature(make).parameters.items()
    declared = [(name, each.annotation, attrs.NOTHING, each.default) for name, each in parameters]
    return _Group(make, declared, make)


def fields(config: type, *, is_made: bool = False, **declared: Any) -> Any:  # type: ignore[explicit-any] # as `option`
    """Declare a parameter as options for fields of a configuration class, by field name.

    Each is an option or group. Type, default and help of an option are those of the field.

    Args:
        config: The class of the configuration.
        is_made: Whether the value is the configuration itself.
        declared: What each field comes from, in the order of the help.
    """
    known = attrs.fields_dict(config)
    declarations = [
        (name, known[name].type, known[name].default, each) for name, each in declared.items()
    ]
    return _Group(config if is_made else dict, declarations, config)


def define_command(  # type: ignore[explicit-any] # as `Maker`
    name: str,
    of: click.Group | None = None,
    *,
    more: Iterable[click.Parameter] = (),
    run: Callable[[Mapping[str, object], Make], object] = lambda values, make: make(values),
    **settings: Any,
) -> Callable[[Maker], click.Command]:
    """Make a command from a function; its parameters declare the options, in this order.

    Its help is the docstring of the function.

    Args:
        name: Name of the command.
        of: Group of the command; None: none.
        more: Further options, of whose values the function has none.
        run: Gets the values of all options, and a function that runs the command with them.
        settings: What `click.Command` takes beside.
    """

    def decorate(function: Maker) -> click.Command:
        parameters, make = group(function).compile()
        command = click.Command(
            name,
            params=[*parameters, *more],
            callback=lambda **values: run(values, make),
            help=_SECTIONS.sub("", cleandoc(function.__doc__ or "")),
            **{"context_settings": HELP_OPTIONS, **settings},
        )
        if of is not None:
            of.add_command(command)
        return command

    return decorate


def _read(  # type: ignore[explicit-any] # values of any type
    read: Read | None,
    gather: Read | None,
    is_list: bool,  # noqa: FBT001 - the first of them are bound
    _: click.Context,
    __: click.Parameter,
    value: Any,
) -> object:
    if value is None:
        return None
    try:
        if read is not None:
            value = tuple(map(read, value)) if is_list else read(value)
        return value if gather is None else gather(value)
    except (ProtoflyError, ValueError) as exc:
        raise click.BadParameter(str(exc)) from exc
