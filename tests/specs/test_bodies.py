"""Bodies cannot be made malformed: C-12, C-45, C-57, N12, MAX_LIST."""

import attrs
import pytest

from specs import body, body_sync
from specs.errors import BadMessageError
from specs.field import WIRE
from specs.limits import MAX_ALLOCATION, MAX_LIST, REGISTRATION_EXPIRES

HA, R = "hyperty://a.ex/ha", "hyperty-runtime://a.ex/ra"
MANY = tuple(f"hyperty://a.ex/{n}" for n in range(MAX_LIST + 1))
CLASSES = sorted(
    {one for module in (body, body_sync) for one in vars(module).values() if attrs.has(one)},
    key=lambda one: one.__name__,
)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_bodies_are_frozen_and_described(cls):
    assert cls.__doc__
    assert cls.__setattr__ is not object.__setattr__


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_no_two_fields_share_a_name_on_the_wire(cls):
    names = [field.metadata.get(WIRE, field.name) for field in attrs.fields(cls)]
    assert len(names) == len(set(names))
    assert not any("_" in name for name in names)


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda a: body.Path((a,)).resources[0], "a path"),
        (lambda a: body.Path((), a).source, "its subscriber"),
        (lambda a: body.Status("live", resource=a).resource, "a status"),
        (lambda a: body.SessionParams(runtime_url=a).runtime_url, "a session"),
        (lambda a: body.Allocated((a,)).allocated[0], "an allocation"),
        (lambda a: body.Free(children_resources=(a,)).children_resources[0], "what is freed"),
        (lambda a: body.Record(url=a, runtime=R).url, "a record"),
        (lambda a: body.Record(url=HA, runtime=a).runtime, "its runtime"),
        (lambda a: body.Record(url=HA, runtime=R, p2p_handler=a).p2p_handler, "its handler"),
        (lambda a: body_sync.DataObject(reporter=a, runtime=R).reporter, "an object's reporter"),
        (lambda a: body_sync.Invitation(source=a, schema="s").source, "an inviter"),
        (lambda a: body_sync.InviteObservers(HA, "s", (a,)).authorise[0], "an invitee"),
        (lambda a: body_sync.Observe(a).resource, "an observed object"),
        (lambda a: body_sync.Subscription(a).source, "an observer"),
        (lambda a: body_sync.Change(source=a).source, "a change's writer"),
        (lambda a: body_sync.ConnectionData(owner=a).owner, "a link's owner"),
        (lambda a: body_sync.ObjectName(a).resource, "a name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_addresses_are_canonical_or_refused(make, where):
    """N12."""
    assert make("runtime://A.ex/ra/") == R
    with pytest.raises(BadMessageError):
        make("nonsense")


def test_what_is_no_text_is_no_address():
    with pytest.raises(BadMessageError):
        body.Path((7,))


@pytest.mark.parametrize(
    "make",
    [
        lambda: body.Path(MANY),
        lambda: body.Allocated(MANY),
        lambda: body.Free(children_resources=MANY),
        lambda: body.Command("m", MANY),
        lambda: body_sync.InviteObservers(HA, "s", MANY),
    ],
)
def test_a_list_beyond_the_limit_is_too_large(make):
    with pytest.raises(BadMessageError) as caught:
        make()
    assert caught.value.code == 413


@pytest.mark.parametrize(
    "make",
    [
        body.Status,
        lambda word: body.Record(HA, R, status=word),
        body.SessionControl,
        body_sync.ConnectionDescription,
        lambda word: body_sync.Candidate(kind=word, address="x", secret=""),
        lambda word: body_sync.Change(operation=word),
    ],
)
def test_words_outside_a_closed_vocabulary_are_refused(make):
    """C-12, C-57, M-14..M-17, P2P-07, C-35."""
    with pytest.raises(BadMessageError, match="must be one of"):
        make("frobnicate")


@pytest.mark.parametrize("number", [0, -1, MAX_ALLOCATION + 1, True])
def test_an_allocation_asks_for_one_address_or_more_up_to_the_limit(number):
    """C-45."""
    with pytest.raises(BadMessageError):
        body.AllocationWish(number)


@pytest.mark.parametrize("number", [1, MAX_ALLOCATION])
def test_an_allocation_may_reach_its_limits(number):
    assert body.Allocate("hyperty", body.AllocationWish(number)).value.number == number


@pytest.mark.parametrize("expires", [0.0, -5.0, REGISTRATION_EXPIRES + 1, float("nan")])
def test_a_registration_expires_in_time(expires):
    with pytest.raises(BadMessageError):
        body.Record(HA, R, expires=expires)


@pytest.mark.parametrize("version", [0, -1])
def test_versions_count_from_one(version):
    """SYN-16."""
    with pytest.raises(BadMessageError):
        body_sync.DataObject(HA, R, version=version)
    with pytest.raises(BadMessageError):
        body_sync.Change(version=version)


def test_what_may_be_absent_may_be_absent():
    assert body.Free().children_resources is None
    assert body.Status("created").resource is None
    assert body_sync.Change().version is None
