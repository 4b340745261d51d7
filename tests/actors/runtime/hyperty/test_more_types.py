"""Types of Python that JSON does not have, generic classes and unions, in values of hyperties."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Generic, Literal, TypeVar
from uuid import UUID

import attrs
import jsonschema
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import actors
from actors.runtime.hyperty.bodies import compose
from actors.runtime.hyperty.typed import Shapes
from specs.errors import BadMessageError
from specs.message import MessageType
from transports.memory import MemoryNetwork

T = TypeVar("T")


@attrs.frozen
class Card:
    number: str
    kind: Literal["card"] = "card"


@attrs.frozen
class Transfer:
    iban: str
    kind: Literal["transfer", "wire"] = "transfer"


@attrs.frozen
class Page(Generic[T]):
    items: list[T]
    by_name: dict[str, list[T]] = attrs.Factory(dict)
    next: int | None = None


@attrs.frozen
class Order:
    id: UUID
    due: datetime
    day: date
    price: Decimal
    photo: bytes = b""
    tags: frozenset[str] = frozenset()
    paid: Card | Transfer | None = None


ID = UUID("123e4567-e89b-12d3-a456-426614174000")
DUE = datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)
ORDER = Order(
    ID, DUE, date(2026, 1, 31), Decimal("12.50"), b"\0\xff", frozenset("ba"), Transfer("DE00")
)
WRITTEN = {
    "id": "123e4567-e89b-12d3-a456-426614174000",
    "due": "2026-01-31T12:00:00.500000+00:00",
    "day": "2026-01-31",
    "price": "12.50",
    "photo": "AP8=",
    "tags": ["a", "b"],
    "paid": {"iban": "DE00", "kind": "transfer"},
}


def written(value):
    """Return a value as a receiver reads it."""
    message = compose((1, MessageType.CREATE, "hyperty://a/1", "hyperty://a/2"), {"value": value})
    return orjson.loads(orjson.dumps(message.body["value"]))


def schema_of(kind):
    shapes = Shapes()
    return {**shapes.schema(kind, "test"), "$defs": shapes.defs}


def check(value, kind):
    """Check a JSON value with a validator of others."""
    validator = jsonschema.Draft202012Validator
    validator(schema_of(kind), format_checker=validator.FORMAT_CHECKER).validate(value)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (DUE, datetime, "2026-01-31T12:00:00.500000+00:00"),
        (date(2026, 1, 31), date, "2026-01-31"),
        (Decimal("-1E+2"), Decimal, "-100"),
        (ID, UUID, str(ID)),
        (b"\0\xff", bytes, "AP8="),
        ({3, 1, 2}, set[int], [1, 2, 3]),
        (frozenset({date(2026, 1, 2), date(2026, 1, 1)}), frozenset[date],
         ["2026-01-01", "2026-01-02"]),
        (Page([Card("1")]), Page[Card],
         {"items": [{"number": "1", "kind": "card"}], "by_name": {}, "next": None}),
        (Page([[1]], {"a": [[2]]}, 3), Page[list[int]],
         {"items": [[1]], "by_name": {"a": [[2]]}, "next": 3}),
        (Card("1"), Card | Transfer, {"number": "1", "kind": "card"}),
        ([Transfer("1", "wire"), None], list[Card | Transfer | None],
         [{"iban": "1", "kind": "wire"}, None]),
        (ORDER, Order, WRITTEN),
    ],
)  # fmt: skip
def test_a_value_is_written_as_the_schema_says_and_read_again(value, kind, text):
    assert written(value) == text
    check(text, kind)
    again = actors.read_as(text, kind)
    assert (again, type(again)) == (value, type(value))


@pytest.mark.parametrize(
    ("value", "kind", "why"),
    [
        ("tomorrow", datetime, "value: must be a date and time with a time zone, such as 2026-01"),
        ("2026-01-31T12:00:00", datetime, "with a time zone, such as 2026-01-31T12:00:00Z, not"),
        ("2026-02-30T12:00:00Z", datetime, "must be a date and time"),
        (0, datetime, "must be a date and time"),
        ("20260131", date, "value: must be a date such as 2026-01-31, not '20260131'"),
        (1.5, Decimal, "value: must be a text with a decimal number, such as '12.50', not 1.5"),
        ("NaN", Decimal, "must be a text with a decimal number"),
        ("1e9", Decimal, "must be a text with a decimal number"),
        ("{123e4567-e89b-12d3-a456-426614174000}", UUID, "must be a UUID"),
        ("AP8", bytes, "must be bytes as base64"),
        ("A P8", bytes, "must be bytes as base64"),
        ([1, 1], set[int], "value: has the same element twice"),
        ([1, "x"], frozenset[int], "value[1]: must be a whole number, not 'x'"),
        ({"items": [{"number": 1}]}, Page[Card], "value.items[0].number: must be text, not 1"),
        ({"kind": "cash"}, Card | Transfer, "kind: must be one of 'card', 'transfer', 'wire'"),
        ({"number": "1"}, Card | Transfer, "value.kind: it is missing"),
        ({"kind": ["card"]}, Card | Transfer, "value.kind: must be one of"),
        ({"kind": "card", "iban": "1"}, Card | Transfer, "the key 'iban' is unknown"),
        (None, Card | Transfer, "value: must be an object, not null"),
        ({**WRITTEN, "due": "soon"}, Order, "value.due: must be a date and time"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_with_its_place(value, kind, why):
    with pytest.raises(BadMessageError) as caught:
        actors.read_as(value, kind)
    assert why in caught.value.reason


@attrs.frozen
class NoTag:
    number: str


@attrs.frozen
class SameWord:
    kind: Literal["card", "other"] = "other"


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (complex, "no JSON is read into complex"),
        (set, "no JSON is read into set"),
        (int | str, "no JSON is read into"),
        (Card | NoTag, "Card, NoTag need a field of the type Literal"),
        (Card | SameWord, "Card, SameWord need a field of the type Literal"),
        (Page, "no JSON is read into T"),
        (timedelta, "no JSON is read into timedelta"),
    ],
)
def test_a_type_that_is_none_is_refused_before_the_first_message(kind, why):
    with pytest.raises(TypeError, match=why):
        actors.read_as({}, kind)

    async def order(self, value: kind) -> None: ...

    with pytest.raises(TypeError, match=why):
        type("Shop", (actors.Hyperty,), {"order": actors.handles("create")(order)})


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"due": datetime(2026, 1, 1)}, "a datetime needs a time zone"),  # noqa: DTZ001 - it is refused
        ([Decimal("NaN")], "NaN is no finite number"),
        ({"x": {1 + 2j}}, "x"),
    ],
)
def test_a_value_that_cannot_be_written_is_refused_where_it_is_sent(value, why):
    with pytest.raises(actors.NotJsonError, match=why):
        written(value)


WHEN = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5, minutes=-30))]))
VALUES = st.one_of(
    st.tuples(WHEN, st.just(datetime)),
    st.tuples(st.dates(), st.just(date)),
    st.tuples(st.decimals(allow_nan=False, allow_infinity=False), st.just(Decimal)),
    st.tuples(st.uuids(), st.just(UUID)),
    st.tuples(st.binary(), st.just(bytes)),
    st.tuples(st.frozensets(st.text()), st.just(frozenset[str])),
)


@given(VALUES)
def test_each_value_comes_as_it_went(case):
    value, kind = case
    text = written(value)
    check(text, kind)
    assert actors.read_as(text, kind) == value


async def test_a_hyperty_takes_and_returns_them(autojump_clock):
    class Shop(actors.Hyperty):
        @actors.handles("create", path="/order")
        async def order(self, value: Order) -> Page[Order]:
            return Page([value])

        @actors.handles("update", path="/order")
        async def pay(self, value: Card | Transfer) -> set[str]:
            return {type(value).__name__}

        @actors.handles("read", path="/order")
        async def due(self, value: list[date]) -> datetime:
            return DUE if value else max([])

    network = MemoryNetwork()
    async with (
        actors.open_node("a.example", network=network) as node,
        actors.open_runtime("a.example", "bob", node=node.url, network=network) as runtime,
        await runtime.deploy(Shop) as shop,
    ):

        async def ask(value, verb="create"):
            answer = await shop.request(shop.url, value, verb, path="/order")
            return answer.value if answer.ok else (answer.code, answer.body["description"])

        page = await ask(ORDER)
        assert actors.read_as(page, Page[Order]) == Page([ORDER])
        assert await ask(Card("1"), "update") == ["Card"]
        assert await ask([date(2026, 1, 1)], "read") == "2026-01-31T12:00:00.500000+00:00"
        assert await ask({"kind": "x"}, "update") == (
            400,
            "value.kind: must be one of 'card', 'transfer', 'wire', not 'x'",
        )
    schema = Shop.message_schema()
    assert {"Order", "Page_Order", "Card", "Transfer"} <= schema["$defs"].keys()
