"""The records of a domain registry against a model of them (I-G1..I-G5)."""

from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fsm.engine import Step
from fsm.machines.registration import State
from fsm.registry.records import Answered, By, Create, Find, Read, Row, Search, Touch, search_of
from specs.limits.protocol import REGISTRATION_EXPIRES, REGISTRATION_GRAVE
from tests.support.link_calls import Call, is_asked
from tests.support.lone_registry import LoneRegistry, leave, tell

URLS = st.sampled_from(["hyperty://a.ex/1", "hyperty://a.ex/2"])
RUNTIMES = st.sampled_from(["r1", "r2"])
HB = "hyperty://a.ex/hb"
USER = "user://a.ex/u"


def code(effects):
    return next(one.code for one in effects if isinstance(one, Answered))


def created(core, url=HB, by="r1", now=0.0, **more):
    return core.feed(Create(url, by, by, {"url": url, "runtime": by, **more}), now)


class Registry(RuleBasedStateMachine):
    """Status and time of death of each record, kept the simplest way; and what is on disk."""

    def __init__(self):
        super().__init__()
        self.core = LoneRegistry()
        self.now = 0.0
        self.model = {}
        self.disk = {}
        self.reported = {}

    def feed(self, happened):
        effects = self.core.feed(happened, self.now)
        for effect in effects:
            match effect:
                case Call("keep"):
                    self.disk[effect.row.url] = effect.row
                case Call("forget"):
                    del self.disk[effect.url]
                case Call("report_status"):
                    assert self.reported.get(effect.url) != effect.status
                    self.reported[effect.url] = effect.status
        return effects

    def live(self, url, owner, lasts):
        status = "lasting" if lasts else "live"
        self.model[url] = (owner, status, self.now + REGISTRATION_EXPIRES)

    def away(self, url):
        owner, status, _ = self.model[url]
        if status != "disconnected":
            self.model[url] = (owner, "disconnected", self.now + REGISTRATION_GRAVE)

    @rule(url=URLS, by=RUNTIMES, lasts=st.booleans())
    def create(self, url, by, lasts):
        allowed = self.model.get(url, (by,))[0] == by
        value = {"url": url, "runtime": by}
        asked = Create(url, by, by, value, is_lasting=lasts)
        assert code(self.feed(asked)) == (200 if allowed else 403)
        if allowed:
            self.live(url, by, lasts)

    @rule(url=URLS, by=RUNTIMES, lasts=st.booleans())
    def keep_alive(self, url, by, lasts):
        expected = 404 if url not in self.model else 200 if self.model[url][0] == by else 403
        assert code(self.feed(Touch(url, by, {}, lasts))) == expected
        if expected == 200:
            self.live(url, by, lasts)

    @rule(url=URLS, by=RUNTIMES)
    def unregister(self, url, by):
        expected = 404 if url not in self.model else 200 if self.model[url][0] == by else 403
        assert code(self.feed(Touch(url, by, {"status": "disconnected"}))) == expected
        if expected == 200:
            owner, status, _ = self.model[url]
            self.model[url] = (owner, "disconnected", self.now + REGISTRATION_GRAVE)
            assert status in {"live", "lasting", "disconnected"}

    @rule(runtime=RUNTIMES)
    def leave(self, runtime):
        self.feed(leave(runtime, "session over"))
        for url, (owner, status, _) in list(self.model.items()):
            if owner == runtime and status == "live":
                self.away(url)

    @rule(seconds=st.sampled_from([1.0, 1800.0, REGISTRATION_EXPIRES, REGISTRATION_GRAVE]))
    def time_passes(self, seconds):
        until = self.now + seconds
        while self.core.deadline() <= until:
            self.now = max(self.now, self.core.deadline())
            self.feed(tell.tick())
            for url in [u for u, (_, _, due) in self.model.items() if due <= self.now]:
                if self.model[url][1] != "disconnected":
                    self.away(url)
                else:
                    del self.model[url]
                    self.reported.pop(url, None)
        self.now = until

    @invariant()
    def reads_return_the_status(self):
        for url in ("hyperty://a.ex/1", "hyperty://a.ex/2"):
            status = self.model.get(url, (None, None))[1]
            expected = {"live": 200, "lasting": 200, "disconnected": 408, None: 404}[status]
            assert code(self.core.feed(Read(url), self.now)) == expected
            row = self.core.row(url)
            assert row is None or row.value["status"] == self.reported[url]
            assert self.reported.get(url) in {None, "live", "disconnected"}

    @invariant()
    def the_disk_holds_what_is_true(self):
        assert {url: row.status.value for url, row in self.disk.items()} == {
            url: status for url, (_, status, _) in self.model.items()
        }

    @invariant()
    def a_restart_changes_nothing(self):
        again = LoneRegistry(self.disk.values())
        assert len(again) == len(self.core)
        for url in self.disk:
            assert again.row(url) == self.core.row(url)


TestRegistry = Registry.TestCase


def test_a_record_may_come_before_it_is_live_and_is_unseen_till_then():
    core = LoneRegistry()
    created(core, status="created")
    assert code(core.feed(Read(HB), 0.0)) == 404
    assert code(core.feed(Touch(HB, "r1", {"status": "disconnected"}), 0.0)) == 400

    effects = core.feed(Touch(HB, "r1", {"status": "live"}), 0.0)

    assert [one.new for one in effects if isinstance(one, Step)] == ["live"]
    assert code(core.feed(Read(HB), 0.0)) == 200


def test_records_that_never_were_live_die_unreported_with_their_runtime():
    core = LoneRegistry()
    urls = [HB, "hyperty://a.ex/other"]
    for url in urls:
        created(core, url, status="created")

    effects = core.feed(leave("r1", "gone"), 1.0)

    assert [one.new for one in effects if isinstance(one, Step)] == ["dead", "dead"]
    assert [one.url for one in effects if is_asked(one, "forget")] == urls
    assert not [one for one in effects if is_asked(one, "report_status")]
    assert len(core) == 0


def test_a_record_that_does_not_become_live_in_time_dies():
    core = LoneRegistry()
    created(core, status="created")
    created(core, status="created", now=1.0)

    assert core.feed(tell.tick(), REGISTRATION_EXPIRES) == []
    core.feed(tell.tick(), REGISTRATION_EXPIRES + 1.0)
    assert len(core) == 0


def test_url_and_runtime_of_a_record_do_not_change():
    core = LoneRegistry()
    created(core)

    assert code(core.feed(Touch(HB, "r1", {"runtime": "r2"}), 0.0)) == 400
    assert code(core.feed(Touch(HB, "r1", {"status": "dead"}), 0.0)) == 400


def test_a_record_of_another_process_is_reported_from_its_beginning():
    row = Row(HB, "r1", State.DISCONNECTED, 0.0, {"url": HB, "runtime": "r1"})
    core = LoneRegistry([row])

    effects = core.feed(Touch(HB, "r1", {}), 1.0)

    steps = [(one.old, one.new) for one in effects if isinstance(one, Step)]
    assert steps == [(None, "live"), ("live", "disconnected"), ("disconnected", "live")]


def test_a_record_made_again_after_its_death_is_another_entity():
    core = LoneRegistry()
    created(core)
    core.feed(leave("r1", "gone"), 0.0)
    core.feed(tell.tick(), REGISTRATION_GRAVE)

    (step, *_) = created(core, now=REGISTRATION_GRAVE)

    assert (step.key, step.old, step.new) == (f"{HB}|2", None, "live")


def test_a_search_with_live_and_lost_records_reports_the_live_ones():
    core = LoneRegistry()
    created(core, user="user://idp.ex/bob")
    created(core, "hyperty://a.ex/other", user="user://idp.ex/bob")
    core.feed(Touch(HB, "r1", {"status": "disconnected"}), 0.0)

    (answer,) = core.feed(Find(Search(By.USER, "user://idp.ex/bob")), 0.0)

    assert answer.code == 200
    assert [one["url"] for one in answer.value] == ["hyperty://a.ex/other"]


def test_a_record_is_newer_than_those_of_an_earlier_process():
    row = Row(HB, "r1", State.LIVE, 0.0, {"url": HB, "runtime": "r1", "name": "n"}, number=5)
    core = LoneRegistry([row])
    created(core, "hyperty://a.ex/other", name="n")
    assert core.row("hyperty://a.ex/other").number == 6
    created(core, HB, name="n")
    assert core.row(HB).number == 5


def test_addresses_that_are_buried_leave_nothing_in_memory():
    core = LoneRegistry()
    empty = {name: len(one) for name, one in vars(core.core).items() if hasattr(one, "__len__")}
    for number in range(100):
        created(core, f"hyperty://a.ex/h{number}", status="created")
        core.feed(leave("r1", "gone"), 0.0)
        core.settle()
    tables = {name: len(one) for name, one in vars(core.core).items() if hasattr(one, "__len__")}
    assert tables == empty


def test_a_requested_record_is_reported_by_its_form():
    assert search_of(HB, None) is None
    assert search_of("user://idp.ex/bob", None) == Search(By.USER, "user://idp.ex/bob")
    assert search_of("/comm/guid/user-guid://g", None) == Search(
        By.GUID, "user-guid://g", scheme="comm"
    )
    assert search_of("/comm/odd/x", None) is None


def lasting(core, now=0.0, **more):
    value = {"url": HB, "runtime": "r1", **more}
    return core.feed(Create(HB, "r1", "r1", value, is_lasting=True), now)


def reported(effects):
    return [one.status for one in effects if is_asked(one, "report_status")]


def test_a_record_in_upstreams_form_outlives_the_session():
    """MN-07: as upstream's registry, which hears of no session."""
    core = LoneRegistry()
    effects = lasting(core)

    assert core.feed(leave("r1", "session over"), 1.0) == []
    assert [one.new for one in effects if isinstance(one, Step)] == ["lasting"]
    (answer,) = core.feed(Read(HB), 2.0)
    assert (answer.code, answer.value["status"]) == (200, "live")


def test_a_lasting_record_expires_and_is_unregistered_like_any():
    """I-G4, M-23."""
    core = LoneRegistry()
    lasting(core, expires=60)
    core.feed(leave("r1", "session over"), 1.0)
    assert core.deadline() == 60.0
    assert reported(core.feed(tell.tick(), 60.0)) == ["disconnected"]

    assert reported(lasting(core, now=61.0)) == ["live"]
    unregistered = Touch(HB, "r1", {"status": "disconnected"}, is_lasting=True)
    assert reported(core.feed(unregistered, 62.0)) == ["disconnected"]
    assert code(core.feed(Read(HB), 63.0)) == 408


def test_a_registration_in_our_form_makes_the_record_end_with_the_session():
    """The last registration or update counts; to others nothing has changed (I-G5)."""
    core = LoneRegistry()
    lasting(core)

    assert reported(core.feed(Touch(HB, "r1", {}), 1.0)) == []
    assert reported(core.feed(leave("r1", "session over"), 2.0)) == ["disconnected"]


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
