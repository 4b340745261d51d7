"""Request handlers as methods of a hyperty: selection by request, and their common JSON Schema.

Verb and path select the handler; the path is the `resource` of the body. It is no part of the
address, as routers know whole addresses only (BUS-01).
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeVar, get_type_hints

import attrs

from actors.runtime.hyperty.typed import NAMES, Sendable, Shapes, is_class, keys_of, read_value
from specs.json_schema import DIALECT
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType

_VERBS: Final = frozenset(
    {
        MessageType.CREATE,
        MessageType.READ,
        MessageType.UPDATE,
        MessageType.DELETE,
        MessageType.EXECUTE,
    }
)
"""Verbs whose meaning the application defines."""

_MARK: Final = "__protofly_handles__"

F = TypeVar("F", bound=Callable[..., Awaitable[Sendable]])  # type: ignore[explicit-any] # any such


@attrs.frozen
class _Wanted:
    """The requests of a handler: verb, path, or class of the value.

    Attributes:
        verb: Verb of the request.
        path: `resource` of its body; empty: it has none.
        by_class: Class of its value, if other handlers have the same verb and path.
        shield: Whether the method goes on when the requester has given up.
    """

    verb: MessageType
    path: str
    by_class: type | None = None
    shield: bool = False

    @property
    def words(self) -> str:
        """The requests in words, for people."""
        path = f" of {self.path}" if self.path else ""
        return f"{self.verb}{path}"


def handles(  # type: ignore[explicit-any] # see F
    what: str | type, *, path: str = "", shield: bool = False
) -> Callable[[F], F]:
    """Mark a method of a hyperty as a handler of requests.

    The method is asynchronous. Its one parameter is the `value` of the request, read into the
    annotated type: an attrs class, a dataclass, a type of JSON or one that is sent as text, such
    as `datetime`, or a list, set, mapping, union or optional of these. It may have a second
    parameter of the type `Message`, or none for the value. What it returns becomes the value of the
    answer 200; it raises `Refused` to answer with another code. A value that does not obey is
    answered 400, with the place of the flaw. Requests that no handler takes go to `on_request`.

    Args:
        what: The verb: create, read, update, delete or execute. Or an attrs class or
            dataclass: the method then takes each create whose value has the keys of this class.
        path: What the request is about, such as `/todo`; `request` has it as `path`, the message as
            `resource` of its body.
        shield: Whether the method goes on when its requester is cancelled or has waited too long;
            else it is cancelled then.

    Raises:
        TypeError: Verb or path is invalid. When the class of the hyperty is defined: the method has
            other parameters or annotations, or another handler takes the same requests.
    """
    if path and not path.startswith("/"):
        raise TypeError(f"a path begins with a slash, such as '/todo', not {path!r}")
    if isinstance(what, type) and is_class(what):
        wanted = _Wanted(MessageType.CREATE, path, what, shield)
    elif isinstance(what, str) and what in _VERBS:
        wanted = _Wanted(MessageType(what), path, shield=shield)
    else:
        verbs = ", ".join(sorted(_VERBS))
        raise TypeError(
            f"handles takes one of the verbs {verbs}, or an attrs class or dataclass, not {what!r}"
        )

    def mark(method: F) -> F:  # type: ignore[explicit-any] # see F
        method.__dict__.setdefault(_MARK, []).append(wanted)
        return method

    return mark


@attrs.frozen
class Handler:
    """A method that handles requests.

    Attributes:
        name: Name of the method.
        wanted: The requests that it takes.
        value: Annotation of the parameter for the value; None: there is no such parameter.
        value_name: Name of the parameter for the value; None: there is none.
        message_name: Name of the parameter for the message; None: it has none.
        answer: Annotation of the returned value.
        text: The first paragraph of its docstring.
    """

    name: str
    wanted: _Wanted
    value: object
    value_name: str | None
    message_name: str | None
    answer: object
    text: str

    async def call(self, hyperty: object, message: Message) -> Sendable:
        """Call the method of a hyperty for a request.

        Args:
            hyperty: The hyperty.
            message: The request.

        If cancelled, the method is cancelled.

        Raises:
            BadMessageError: 400: the value does not obey the annotation.
        """
        kind = type(None) if self.value_name is None else self.value
        value = read_value(message.value, kind)
        arguments: dict[str, object] = {}
        if self.value_name is not None:
            arguments[self.value_name] = value
        if self.message_name is not None:
            arguments[self.message_name] = message
        answer: Sendable = await getattr(hyperty, self.name)(**arguments)
        return answer

    def fits(self, value: Json) -> bool:
        """Return whether a value has the keys of the class that selects this handler, if any."""
        if self.wanted.by_class is None:
            return True
        needed, known = keys_of(self.wanted.by_class)
        return isinstance(value, dict) and needed <= value.keys() <= known


class Handlers:
    """The handlers of a class of hyperties.

    Args:
        owner: Name of the class.
        handlers: Its handlers.

    Raises:
        TypeError: Two handlers take the same requests, or no JSON can be read into a type.
    """

    def __init__(self, owner: str, handlers: Iterable[Handler]) -> None:
        self._owner: Final = owner
        self._rows: Final[dict[tuple[MessageType, str], list[Handler]]] = {}
        for handler in handlers:
            self._add(handler)
        self._schema: Final = self._describe()

    def _add(self, handler: Handler) -> None:
        rows = self._rows.setdefault((handler.wanted.verb, handler.wanted.path), [])
        for present in rows:
            if _overlap(handler, present):
                raise TypeError(
                    f"{self._owner}: {present.name} and {handler.name} both handle "
                    f"{handler.wanted.words}"
                )
        rows.append(handler)

    def find(self, request: Message) -> Handler | None:
        """Return the handler of a request; None: there is none."""
        path = request.body.get("resource", "")
        rows = self._rows.get((request.type, path)) if isinstance(path, str) else None
        if not rows:
            return None
        return next((row for row in rows if row.fits(request.value)), None)

    @property
    def words(self) -> list[str]:
        """The requests that are handled, in words for people."""
        return [handler.wanted.words for rows in self._rows.values() for handler in rows]

    @property
    def schema(self) -> JsonObject | None:
        """The JSON Schema of the messages that are handled; None: there are no handlers."""
        return self._schema

    def _describe(self) -> JsonObject | None:
        shapes, messages = Shapes(), list[Json]()
        answers: JsonObject = {}
        for rows in self._rows.values():
            for handler in rows:
                where = f"{self._owner}.{handler.name}"
                messages.append(_message(handler, shapes, where))
                answers[f"{handler.name}.answer"] = shapes.schema(handler.answer, where)
        if not messages:
            return None
        defs: JsonObject = {**shapes.defs, **answers}
        return {"$schema": DIALECT, "title": self._owner, "anyOf": messages, "$defs": defs}


NO_HANDLERS: Final = Handlers("Hyperty", ())


def _overlap(first: Handler, second: Handler) -> bool:
    """Return whether a value could fit both of two handlers of the same verb and path."""
    if first.wanted.by_class is None or second.wanted.by_class is None:
        return True
    needed, known = keys_of(first.wanted.by_class)
    others_needed, others_known = keys_of(second.wanted.by_class)
    return needed <= others_known and others_needed <= known


def _message(handler: Handler, shapes: Shapes, where: str) -> JsonObject:
    """Return the schema of the requests that a handler takes."""
    wanted = handler.wanted
    kind = type(None) if handler.value_name is None else handler.value
    fields: JsonObject = {"value": shapes.schema(kind, where)}
    needed: list[Json] = ["value"]
    if wanted.path:
        fields["resource"] = {"const": wanted.path}
        needed.append("resource")
    body: JsonObject = {"type": "object", "properties": fields, "required": needed}
    return {
        "title": handler.name,
        "description": handler.text,
        "type": "object",
        "properties": {"type": {"const": wanted.verb.value}, "body": body},
        "required": ["type", "body"],
    }


def handlers_of(made: type) -> Handlers:
    """Return the handlers that a class of hyperties defines or inherits.

    Raises:
        TypeError: A method cannot be a handler; see `handles`.
    """
    handlers: list[Handler] = []
    for name in dict.fromkeys(name for base in reversed(made.__mro__) for name in vars(base)):
        method = inspect.getattr_static(made, name)
        marks: Iterable[_Wanted] = getattr(method, "__dict__", {}).get(_MARK, ())
        handlers.extend(_read(made, name, method, wanted) for wanted in marks)
    return Handlers(made.__name__, handlers)


def _read(made: type, name: str, method: object, wanted: _Wanted) -> Handler:
    """Read the signature of a handler.

    Raises:
        TypeError: The method has parameters or annotations that a handler cannot have.
    """
    where = f"{made.__name__}.{name}"
    if not inspect.iscoroutinefunction(method):
        raise TypeError(f"{where}: a handler is an async function")
    try:
        hints: Mapping[str, object] = get_type_hints(
            method, localns=dict(NAMES), include_extras=True
        )
    except NameError as exc:
        raise TypeError(f"{where}: an annotation cannot be read: {exc}") from exc
    value, message = _parameters(method, hints, where)
    kind = None if value is None else hints[value]
    if wanted.by_class is not None and wanted.by_class is not kind:
        raise TypeError(f"{where}: its value must be annotated {wanted.by_class.__name__}")
    text = " ".join((inspect.getdoc(method) or "").split("\n\n")[0].split())
    return Handler(name, wanted, kind, value, message, hints["return"], text)


def _parameters(  # type: ignore[explicit-any] # a method of any parameters
    method: Callable[..., object],
    hints: Mapping[str, object],
    where: str,
) -> tuple[str | None, str | None]:
    """Return the names of the parameters for the value and for the message.

    Raises:
        TypeError: There are other parameters, or one has no annotation.
    """
    _self, *parameters = inspect.signature(method).parameters.values()
    messages = [parameter.name for parameter in parameters if hints.get(parameter.name) is Message]
    values = [parameter.name for parameter in parameters if parameter.name not in messages]
    are_plain = all(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
    if len(messages) > 1 or len(values) > 1 or not are_plain:
        raise TypeError(f"{where}: a handler has one parameter for the value, and one for Message")
    for name in (*values, "return"):
        if name not in hints:
            raise TypeError(f"{where}: {name} has no annotation")
    return next(iter(values), None), next(iter(messages), None)
