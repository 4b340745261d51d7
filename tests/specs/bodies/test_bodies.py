"""Bodies cannot be made malformed: C-12, C-45, C-57, C-77, C-80, N12, MAX_LIST."""

import attrs
import pytest

from specs.bodies import answer, link, registry, session
from specs.bodies import object as manager
from specs.bodies.object import ObserverList
from specs.errors import BadMessageError, SpecError
from specs.json_schema import BODIES
from specs.limits.protocol import MAX_ID, MAX_LIST
from specs.limits.sync import MAX_ALLOWED_OBSERVERS
from specs.schema.field import WIRE, add_checks
from tests.support.cases import for_each

HA, R = "hyperty://a.ex/ha", "hyperty-runtime://a.ex/ra"
O = "comm://a.ex/o1"  # noqa: E741 the protocol's name for an object
MANY = tuple(f"hyperty://a.ex/{n}" for n in range(MAX_LIST + 1))


@for_each(BODIES)
def test_bodies_are_frozen_and_described(cls):
    assert cls.__doc__
    assert cls.__setattr__ is not object.__setattr__


@for_each(BODIES)
def test_no_two_fields_share_a_name_on_the_wire(cls):
    names = [field.metadata.get(WIRE, field.name) for field in attrs.fields(cls)]
    assert len(names) == len(set(names))
    assert not any("_" in name for name in names)


@pytest.mark.parametrize(
    ("make", "reported"),
    [
        (lambda: link.Path((7,)), "resources[0] must be text, not 7"),
        (lambda: link.Path(HA), f"resources must be a list, not '{HA}'"),
        (lambda: link.Path(()), "resources must not be an empty list"),
        (lambda: link.Path((HA, "x")), "resources[1] 'x' is no address: no scheme such as"),
        (lambda: registry.Allocate("", registry.AllocationRequest(1)), "scheme must not be empty"),
        (
            lambda: registry.Allocate("h", {}),
            "value must be of the class AllocationRequest, not a dict",
        ),
        (lambda: registry.Allocate("h", [1]), "value must be an object, not a list"),
        (lambda: registry.Record(HA, R, expires="1"), "expires must be a number, not '1'"),
        (lambda: registry.Record(HA, R, resources=("",)), "resources[0] must not be empty"),
        (lambda: registry.ReadRecord("x", []), "criteria must be an object, not a list"),
        (lambda: manager.Observe(O, p2p=1), "p2p must be true or false, not 1"),
        (lambda: manager.Resume(resume=False), "resume must be true"),
        (lambda: manager.Resume(resume=None), "resume must be true or false, not null"),
        (lambda: manager.InviteObservers(O, "s", (), {}), "authorise must not be an empty list"),
        (
            lambda: manager.InviteObservers(O, "s", (HA, R), {}),
            "authorise must not list more than 1",
        ),
        (lambda: answer.ObjectsResumed(()), "value must not be an empty list"),
        (lambda: session.SessionGranted(None), "sessionToken must be text, not null"),
    ],
)
def test_a_refusal_names_the_field_as_it_is_on_the_wire(make, reported):
    with pytest.raises(BadMessageError) as caught:
        make()
    assert caught.value.reason.startswith(reported)


def test_a_whole_number_may_be_written_with_a_point():
    """JSON has one kind of number, and JSON Schema calls 2.0 an integer."""
    made = registry.AllocationRequest(2.0)
    assert (made.number, type(made.number)) == (2, int)


@pytest.mark.parametrize("version", [0, -1, MAX_ID + 1])
def test_versions_count_from_one(version):
    """SYN-16."""
    for make in (
        lambda: manager.DataObject(HA, R, {}, O, version=version),
        lambda: manager.Change(version),
        lambda: manager.Snapshot(O, version, {}),
    ):
        with pytest.raises(BadMessageError, match="version must be >= 1"):
            make()


DEEP = []
for _ in range(1000):
    DEEP = [DEEP]


# --- rules between fields -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "reported"),
    [
        (registry.Free, "exactly one of resource and childrenResources must be given"),
        (
            lambda: registry.Free("key", (HA,)),
            "exactly one of resource and childrenResources must be given",
        ),
        (lambda: session.SessionControl("open"), "params.runtimeURL is missing, which open needs"),
        (
            lambda: session.SessionControl("re-open", session.SessionParams(None, "t")),
            "params.runtimeURL is missing, which re-open needs",
        ),
        (
            lambda: session.SessionControl("re-open", session.SessionParams(R)),
            "params.token is missing, which re-open needs",
        ),
        (
            lambda: registry.UpdateRecord(HA, attribute="status"),
            "value is missing, which attribute needs",
        ),
        (
            lambda: registry.UpdateRecord(HA, "disconnected"),
            "value must be an object where no attribute is named",
        ),
        (
            lambda: manager.Change(1, "a", ["x"], None, "add"),
            "attributeType is missing, which operation needs",
        ),
        (
            lambda: manager.Change(1, "a", None, "array", "add"),
            "value is missing, which operation needs",
        ),
        (
            lambda: manager.ChangeObject(O, "a", None, "array", "add"),
            "value is missing, which operation needs",
        ),
    ],
)
def test_fields_that_contradict_each_other_are_refused(make, reported):
    """M-14, M-15, M-19, M-20, M-22..M-24, M-40."""
    with pytest.raises(BadMessageError) as caught:
        make()
    assert caught.value.reason == reported


@pytest.mark.parametrize("kind", ["user", "url", "name", "reporter", "guid", "userprofile"])
def test_the_own_runtime_is_searched_by_one_of_six_things(kind):
    """M-31."""
    assert registry.Discover(f"/hyperty/{kind}/x").criteria is None
    with pytest.raises(BadMessageError, match="resource must be /<type>/"):
        registry.Discover(f"/hyperty/{kind}")


# --- annotations --------------------------------------------------------------------------


def test_such_a_class_cannot_even_be_declared():
    with pytest.raises(SpecError):

        @attrs.frozen(slots=True, field_transformer=add_checks)
        class Loose:
            number: int


def test_a_list_of_observers_may_be_longer_than_other_lists():
    """All observers of an object, up to as many as it may have."""
    assert ObserverList(1, MANY).observers == MANY
    with pytest.raises(BadMessageError, match="lists more than 10000"):
        ObserverList(1, MANY * (MAX_ALLOWED_OBSERVERS // MAX_LIST + 1))
