"""Bodies cannot be made malformed: C-12, C-45, C-57, C-77, C-80, N12, MAX_LIST."""

import attrs
import pytest

from specs.bodies import answer, link, registry, session
from specs.bodies import object as manager
from specs.bodies.object import ObserverList
from specs.errors import BadMessageError, SpecError
from specs.json_schema import BODIES
from specs.limits.protocol import MAX_ALLOCATION, MAX_ID, MAX_LIST, REGISTRATION_EXPIRES
from specs.limits.sync import MAX_ALLOWED_OBSERVERS
from specs.schema.field import WIRE, add_checks
from specs.schema.shape import shape_of
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
    ("make", "where"),
    [
        (lambda a: link.Path((a,)).resources[0], "a path"),
        (lambda a: link.Path((HA,), a).source, "its subscriber"),
        (lambda a: session.Status("live", resource=a).resource, "a status"),
        (lambda a: link.LinkStatus("live", a).resource, "a link's status"),
        (lambda a: link.ListChange((a,), "add").value[0], "a list that changes"),
        (lambda a: link.Command("connect", (a,)).params[0], "a command"),
        (lambda a: session.SessionParams(runtime_url=a).runtime_url, "a session"),
        (lambda a: registry.Allocated((a,)).allocated[0], "an allocation"),
        (lambda a: registry.Free(children_resources=(a,)).children_resources[0], "what is freed"),
        (lambda a: registry.Record(url=a, runtime=R).url, "a record"),
        (lambda a: registry.Record(url=HA, runtime=a).runtime, "its runtime"),
        (lambda a: registry.Record(url=HA, runtime=R, p2p_handler=a).p2p_handler, "its handler"),
        (lambda a: registry.UpdateRecord(a).resource, "a record that is changed"),
        (lambda a: manager.NewObject(a, {}).reporter, "a new object's reporter"),
        (lambda a: manager.DataObject(a, R, {}, O).reporter, "an object's reporter"),
        (lambda a: manager.Snapshot(a, 1, {}).url, "an object that is shown"),
        (lambda a: manager.Invitation(a, "s", {}).source, "an inviter"),
        (lambda a: manager.InviteObservers(HA, "s", (a,), {}).authorise[0], "an invitee"),
        (lambda a: manager.Observe(a).resource, "an observed object"),
        (lambda a: manager.Subscription(a).source, "an observer"),
        (lambda a: manager.Change(1, source=a).source, "a change's writer"),
        (lambda a: manager.ConnectionData(owner=a).owner, "a link's owner"),
        (lambda a: manager.ObjectName(a).resource, "a name"),
        (lambda a: manager.Wrapped(1, "subscribe", a, O).from_, "who asked"),
        (lambda a: session.GlobalRecord(a, "jwt").resource, "a user"),
        (lambda a: answer.Sourced(a).source, "who answers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_addresses_are_canonical_or_refused(make, where):
    """N12."""
    assert make("runtime://A.ex/ra/") == R
    with pytest.raises(BadMessageError, match="is no address"):
        make("nonsense")
    with pytest.raises(BadMessageError, match="must be text, not 7"):
        make(7)


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


@pytest.mark.parametrize(
    "make",
    [
        lambda: link.Path(MANY),
        lambda: registry.Allocated(MANY),
        lambda: registry.Free(children_resources=MANY),
        lambda: link.Command("connect", MANY),
        lambda: manager.InviteObservers(HA, "s", MANY, {}),
        lambda: answer.RecordsFound(MANY),
    ],
)
def test_a_list_beyond_the_limit_is_too_large(make):
    with pytest.raises(BadMessageError) as caught:
        make()
    assert caught.value.code == 413


@pytest.mark.parametrize(
    "make",
    [
        session.Status,
        lambda word: link.LinkStatus(word, R),
        lambda word: registry.Record(HA, R, status=word),
        lambda word: registry.RecordChanged("status", word),
        lambda word: registry.RecordChanged(word, "live"),
        session.SessionControl,
        link.Command,
        manager.ConnectionDescription,
        lambda word: manager.Candidate(word, "x", "0a"),
        lambda word: manager.Change(1, "a", 1, "array", word),
        lambda word: manager.Change(1, "a", 1, word),
        lambda word: link.ListChange((HA,), word),
        lambda word: link.ListChange((HA,), "add", word),
        lambda word: manager.LinkRow(word, "live"),
        lambda word: manager.LinkRow("handler", word),
        lambda word: manager.Wrapped(1, word, HA, O),
    ],
)
def test_words_outside_a_closed_vocabulary_are_refused(make):
    """C-12, C-57, M-14..M-17, P2P-07, C-35."""
    with pytest.raises(BadMessageError, match="must be one of"):
        make("frobnicate")
    with pytest.raises(BadMessageError, match="must be text, not 5"):
        make(5)


@pytest.mark.parametrize("number", [0, -1, MAX_ALLOCATION + 1, True, 1.5, "1", None])
def test_an_allocation_asks_for_one_address_or_more_up_to_the_limit(number):
    """C-45."""
    with pytest.raises(BadMessageError):
        registry.AllocationRequest(number)


@pytest.mark.parametrize("number", [1, MAX_ALLOCATION])
def test_an_allocation_may_reach_its_limits(number):
    assert registry.Allocate("hyperty", registry.AllocationRequest(number)).value.number == number


def test_a_whole_number_may_be_written_with_a_point():
    """JSON has one kind of number, and JSON Schema calls 2.0 an integer."""
    made = registry.AllocationRequest(2.0)
    assert (made.number, type(made.number)) == (2, int)


@pytest.mark.parametrize("expires", [0.0, -5.0, REGISTRATION_EXPIRES + 1, float("nan")])
def test_a_registration_expires_in_time(expires):
    with pytest.raises(BadMessageError):
        registry.Record(HA, R, expires=expires)


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


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        (99, []),
        (100, [answer.Provisional]),
        (199, [answer.Provisional]),
        (200, [answer.Done]),
        (299, [answer.Done]),
        (300, [answer.Refusal]),
        (599, [answer.Refusal]),
        (600, []),
    ],
)
def test_a_code_is_of_one_kind_of_answer(code, kinds):
    """MSG-05, MSG-17."""
    taken = []
    for kind in (answer.Provisional, answer.Done, answer.Refusal):
        try:
            taken.append(type(kind(code)))
        except BadMessageError:
            continue
    assert taken == kinds


DEEP = []
for _ in range(1000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        {1: 2},
        {"a": [object()]},
        [{"a": float("nan")}],
        (1,),
        b"x",
        DEEP,
    ],
    ids=["nan", "inf", "key", "object", "inner nan", "tuple", "bytes", "deep"],
)
def test_free_json_holds_nothing_else(value):
    """Or it would come as something else: NaN as null, which removes an attribute."""
    with pytest.raises(BadMessageError, match="value must be JSON, not"):
        manager.Change(1, "a", value)
    with pytest.raises(BadMessageError, match="data must hold JSON only"):
        attrs.evolve(manager.Snapshot(O, 1, {}), data={"a": value})


@pytest.mark.parametrize("value", [None, True, 1.5, [1.5, {"a": None}], {"a": {"b": []}}, 2**53])
def test_all_that_is_json_is_free(value):
    assert manager.Change(1, "a", value).value == value


@pytest.mark.parametrize(
    "make",
    [
        lambda: session.SessionGranted(""),
        lambda: manager.Candidate("tcp", "", "0a"),
        lambda: manager.Candidate("tcp", "h:1", ""),
    ],
)
def test_an_opening_body_is_not_empty(make):
    with pytest.raises(BadMessageError, match="must not be empty"):
        make()


# --- rules between fields -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "reported"),
    [
        (
            registry.Free,
            "exactly one of resource and childrenResources must be given",
        ),
        (
            lambda: registry.Free("key", (HA,)),
            "exactly one of resource and childrenResources must be given",
        ),
        (
            lambda: session.SessionControl("open"),
            "params.runtimeURL is missing, which open needs",
        ),
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


def test_a_resumption_without_a_token_is_refused():
    """M-15: 401, as for a wrong one."""
    with pytest.raises(BadMessageError) as caught:
        session.SessionControl("re-open", session.SessionParams(R))
    assert caught.value.code == 401


def test_optional_fields_may_be_absent():
    assert registry.Free("key").children_resources is None
    assert registry.Free(children_resources=(HA,)).resource is None
    assert session.Status("created").resource is None
    assert manager.Change(1).attribute is None
    assert session.SessionControl("ping").params.token is None
    assert registry.UpdateRecord(HA) == registry.UpdateRecord(HA, None, None)
    assert registry.UpdateRecord(HA, {"user": "u"}).value == {"user": "u"}


@pytest.mark.parametrize("name", [f"{HA}#1", f"{HA}#12", f"{R}/p2phandler/1#7"])
def test_a_child_is_named_by_its_creator_and_a_number(name):
    """SYN-24, I-D10."""
    assert manager.ChildName(name).resource == name


NO_CHILDREN = [
    f"{HA}#{10**16}",
    "hyperty://a.ex/../ha#1",
    "hyperty://a..ex/ha#1",
    "hyperty://a.ex/.#1",
]
"""Their creators' addresses are none, or they are numbered beyond all ids."""


@pytest.mark.parametrize(
    "name", [HA, f"{HA}#", f"{HA}#0", f"{HA}#x", "#1", f"{HA}#1\n", "ha#1", *NO_CHILDREN]
)
def test_nothing_else_names_a_child(name):
    with pytest.raises(BadMessageError, match="must be its creator's address, # and a number"):
        manager.Child(name, 1)


@pytest.mark.parametrize("kind", ["user", "url", "name", "reporter", "guid", "userprofile"])
def test_the_own_runtime_is_searched_by_one_of_six_things(kind):
    """M-31."""
    assert registry.Discover(f"/hyperty/{kind}/x").criteria is None
    with pytest.raises(BadMessageError, match="resource must be /<type>/"):
        registry.Discover(f"/hyperty/{kind}")


# --- annotations --------------------------------------------------------------------------


@pytest.mark.parametrize("annotation", [int, float, bytes, int | str, list[str]])
def test_an_annotation_that_says_too_little_is_a_mistake_of_the_table(annotation):
    with pytest.raises(SpecError, match="does not say what a field holds"):
        shape_of(annotation)


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
