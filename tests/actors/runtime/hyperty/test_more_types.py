"""Types of Python that JSON does not have, generic classes and unions, in values of hyperties."""

import dataclasses
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Generic, Literal, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import jsonschema
import jsonschema_rs
import orjson
import pytest
import trio
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
class Numbers(Page[int]):
    """A page whose type is fixed."""


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclasses.dataclass
class Box(Generic[T]):
    content: T
    size: Size = Size.SMALL
    inner: "list[Box[T]]" = dataclasses.field(default_factory=list)
    note: actors.Json = None
    weight: int = dataclasses.field(init=False, default=1)


@dataclasses.dataclass
class Parcel:
    takes: timedelta
    size: Size = Size.SMALL


class Moment(datetime):
    """A subclass, as libraries for tests have it."""


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
    """Check a JSON value with two validators of others; only the second knows all formats.

    In RFC 3339 a duration has neither a sign nor a fraction.
    """
    validator, schema = jsonschema.Draft202012Validator, schema_of(kind)
    validator(schema, format_checker=validator.FORMAT_CHECKER).validate(value)
    if kind is not timedelta or not {"-", "."} & set(value):
        jsonschema_rs.Draft202012Validator(schema, validate_formats=True).validate(value)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (DUE, datetime, "2026-01-31T12:00:00.500000+00:00"),
        (datetime(1900, 1, 1, tzinfo=ZoneInfo("Europe/Amsterdam")), datetime,
         "1899-12-31T23:40:28+00:00"),
        (date(2026, 1, 31), date, "2026-01-31"),
        (time(9, 30), time, "09:30:00"),
        (timedelta(days=1, hours=2, seconds=3), timedelta, "P1DT2H0M3S"),
        (timedelta(0), timedelta, "PT0S"),
        (timedelta(days=400), timedelta, "P400D"),
        (Size.LARGE, Size, "l"),
        ([Box(date(2026, 1, 31), Size.LARGE, [Box(date(2026, 1, 1))])], list[Box[date]],
         [{"content": "2026-01-31", "size": "l", "note": None,
           "inner": [{"content": "2026-01-01", "size": "s", "note": None, "inner": []}]}]),
        (Numbers([1]), Numbers, {"items": [1], "by_name": {}, "next": None}),
        ({"a": [Page([Box(b"a")])]}, dict[str, list[Page[Box[bytes]]]],
         {"a": [{"items": [{"content": "YQ==", "size": "s", "note": None, "inner": []}],
                 "by_name": {}, "next": None}]}),
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
    ("text", "kind", "value"),
    [
        ("2026-01-31T12:00:00.123456789Z", datetime, DUE.replace(microsecond=123456)),
        ("P2W", timedelta, timedelta(weeks=2)),
        ("PT90M", timedelta, timedelta(minutes=90)),
        ("-P1DT0.5S", timedelta, -timedelta(days=1, seconds=0.5)),
        ("09:30:00.25", time, time(9, 30, 0, 250_000)),
    ],
)
def test_other_spellings_of_peers_are_read(text, kind, value):
    assert actors.read_as(text, kind) == value


def test_a_subclass_of_a_type_is_written_as_the_type():
    assert written(Moment(2026, 1, 31, tzinfo=UTC)) == "2026-01-31T00:00:00+00:00"


def test_the_schema_of_a_union_needs_the_key_that_tells_the_class():
    with pytest.raises(jsonschema.ValidationError, match="'kind' is a required property"):
        check({"number": "1"}, Card | Transfer)
    check(None, Card | Transfer | None)


def test_one_schema_describes_a_generic_class_with_several_types():
    shapes = Shapes()
    for kind in (Page[list[int]], Page[list[str]], Page[Literal["a b"]], Page[Card | None]):
        shapes.schema(kind, "test")
    pages = {name for name in shapes.defs if name.startswith("Page_")}
    assert len(pages) == 4
    assert {"Page_list_int", "Page_list_str", "Page_Literal_a_b"} < pages


@pytest.mark.parametrize(
    ("value", "kind", "why"),
    [
        ("tomorrow", datetime, "value: must be a date and time with a time zone, such as 2026-01"),
        ("2026-01-31T12:00:00", datetime, "with a time zone, such as 2026-01-31T12:00:00Z, not"),
        ("2026-02-30T12:00:00Z", datetime, "must be a date and time"),
        (0, datetime, "must be a date and time"),
        ("20260131", date, "value: must be a date such as 2026-01-31, not '20260131'"),
        ("09:30:00Z", time, "value: must be a time of day without a time zone, such as 09:30:00"),
        ("25:00:00", time, "must be a time of day"),
        ("P1Y", timedelta, "value: must be a duration in weeks, days, hours, minutes and seconds"),
        ("P", timedelta, "must be a duration"),
        ("P1DT", timedelta, "must be a duration"),
        ("PT999999999999H", timedelta, "must be a duration"),
        (90, timedelta, "must be a duration"),
        ([{"content": 1, "sise": "s"}], list[Box[int]], "value[0]: the key 'sise' is unknown"),
        ({"content": 1, "inner": [{"content": "x"}]}, Box[int], "value.inner[0].content: must be"),
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


@attrs.frozen
class TwoMeanings(Page[list[T]], Generic[T]):
    first: T | None = None


@dataclasses.dataclass
class NeedsMore:
    more: dataclasses.InitVar[int]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (complex, "no JSON is read into complex"),
        (set, "no JSON is read into set"),
        (int | str, "no JSON is read into"),
        (Card | NoTag, "Card, NoTag need a field of the type Literal"),
        (Card | SameWord, "Card, SameWord need a field of the type Literal"),
        (Page, "no JSON is read into T"),
        (set[list[int]], "list_int is not hashable: no set can have it"),
        (frozenset[Box[int]], "Box_int is not hashable"),
        (TwoMeanings[int], "T has two meanings in TwoMeanings"),
        (NeedsMore, "NeedsMore needs more, which is no field"),
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
        ([time(9, 30, tzinfo=UTC)], "a time of day has no time zone"),
        (Decimal("1E+999999999"), "too many digits"),
        ([Decimal("NaN")], "NaN is no finite number"),
        ({"x": {1 + 2j}}, "x"),
    ],
)
def test_a_value_that_cannot_be_written_is_refused_where_it_is_sent(value, why):
    with pytest.raises(actors.NotJsonError, match=why):
        written(value)


ZONES = [UTC, timezone(timedelta(hours=-5, minutes=-30)), timezone(timedelta(seconds=-7))]
WHEN = st.datetimes(datetime(2, 1, 1), timezones=st.sampled_from(ZONES))  # noqa: DTZ001
VALUES = st.one_of(
    st.tuples(WHEN, st.just(datetime)),
    st.tuples(st.dates(), st.just(date)),
    st.tuples(st.times(), st.just(time)),
    st.tuples(st.timedeltas(), st.just(timedelta)),
    st.tuples(st.integers(0, 10**7).map(lambda n: timedelta(seconds=n)), st.just(timedelta)),
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
    events = []
    has_come = trio.Event()

    class Shop(actors.Hyperty):
        async def on_event(self, message: actors.Message) -> None:
            events.append(actors.read_as(message.value, Order))
            has_come.set()

        @actors.handles(Parcel)
        async def open(self, parcel: Parcel) -> Size:
            return parcel.size

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

        await shop.send(shop.url, ORDER)
        await has_come.wait()
        assert events == [ORDER]
        assert (await shop.request(shop.url, Parcel(timedelta(days=1)))).value == "s"
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
