"""The records of a domain registry against a model of them (I-G1..I-G5)."""

from itertools import count

from fsm.engine import Step
from fsm.registry.records import Answered, Create, Read, Touch
from specs.limits.protocol import REGISTRATION_GRAVE
from tests.support.lone_registry import LoneRegistry, leave, tell

HB = "hyperty://a.ex/hb"
USER = "user://a.ex/u"


def code(effects):
    return next(one.code for one in effects if isinstance(one, Answered))


def created(core, url=HB, by="r1", now=0.0, **more):
    return core.feed(Create(url, by, by, {"url": url, "runtime": by, **more}), now)


def test_a_record_may_come_before_it_is_live_and_is_unseen_till_then():
    core = LoneRegistry()
    created(core, status="created")
    assert code(core.feed(Read(HB), 0.0)) == 404
    assert code(core.feed(Touch(HB, "r1", {"status": "disconnected"}), 0.0)) == 400

    effects = core.feed(Touch(HB, "r1", {"status": "live"}), 0.0)

    assert [one.new for one in effects if isinstance(one, Step)] == ["live"]
    assert code(core.feed(Read(HB), 0.0)) == 200


def test_a_record_made_again_after_its_death_is_another_entity():
    core = LoneRegistry()
    created(core)
    core.feed(leave("r1", "gone"), 0.0)
    core.feed(tell.tick(), REGISTRATION_GRAVE)

    (step, *_) = created(core, now=REGISTRATION_GRAVE)

    assert (step.key, step.old, step.new) == (f"{HB}|2", None, "live")


def test_addresses_that_are_buried_leave_nothing_in_memory():
    core = LoneRegistry()
    empty = {name: len(one) for name, one in vars(core.core).items() if hasattr(one, "__len__")}
    for number in range(100):
        created(core, f"hyperty://a.ex/h{number}", status="created")
        core.feed(leave("r1", "gone"), 0.0)
        core.settle()
    tables = {name: len(one) for name, one in vars(core.core).items() if hasattr(one, "__len__")}
    assert tables == empty


def lasting(core, now=0.0, **more):
    value = {"url": HB, "runtime": "r1", **more}
    return core.feed(Create(HB, "r1", "r1", value, is_lasting=True), now)


def test_these_are_all_paths_to_a_lasting_record():
    """DESIGN section 5: from each state by the next sign of life in upstream's form."""
    core = LoneRegistry()
    created(core, status="created")
    status = {"status": "live"}
    steps = [
        one.new
        for asked in (
            Touch(HB, "r1", status, is_lasting=True),
            Touch(HB, "r1", status),
            Touch(HB, "r1", {}, is_lasting=True),
            Touch(HB, "r1", {"status": "disconnected"}, is_lasting=True),
            Touch(HB, "r1", {}, is_lasting=True),
        )
        for one in core.feed(asked, 0.0)
        if isinstance(one, Step)
    ]

    assert steps == ["lasting", "live", "lasting", "disconnected", "lasting"]


def test_a_record_for_which_there_is_no_room_costs_its_user_nothing():
    """What is away gives way only if that is enough."""
    core, size = LoneRegistry(), 14_000
    urls = (f"hyperty://a.ex/{number}" for number in count())
    kept = []
    for by in (f"r{number}" for number in count()):
        if code(share(core, next(urls), by, size)) != 200:
            break
    while code(share(core, url := next(urls), "r0", 0)) == 200:
        kept.append(url)
    away = kept[0]
    core.feed(Touch(away, "r0", {"status": "disconnected"}), 0.0)
    assert code(share(core, next(urls), "r0", size)) == 413
    assert core.row(away) is not None
    assert code(share(core, next(urls), "r0", 0)) == 200
    assert core.row(away) is None


def share(core, url, by, size):
    value = {"url": url, "runtime": by, "user": USER, "text": "x" * size}
    return core.feed(Create(url, by, by, value, users=frozenset({USER})), 0.0)
