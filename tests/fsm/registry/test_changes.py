"""Two registries that tell each other what lives where (P2P-23..26, I-C1..I-C6).

The two cores are tried alone, and against each other in every order in which what one
says can reach the other.
"""

from collections import deque

import pytest

from fsm.engine import Step
from fsm.registry.changes import ChangesFollower, ChangesPublisher
from specs.bodies.word import Operation
from specs.limits.protocol import EARLY_CHANGES, REPLY_TIMEOUT
from specs.message import Message, MessageType

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
PQ, PC = f"{RB}/p2prequester/1", f"{RA}/p2phandler/1/conn/1"
HA, OBJ = "hyperty://a.ex/ha", "comm://a.ex/o1"
ADD, REMOVE = Operation.ADD, Operation.REMOVE


def request(number=1, kind=MessageType.SUBSCRIBE):
    body = {"resources": [f"{RA}/registry/changes"]}
    return Message(number, kind, f"{RB}/registry", f"{RA}/registry", body)


def steps(effects):
    return [effect.new for effect in effects if isinstance(effect, Step)]


def without_steps(effects):
    return [effect for effect in effects if not isinstance(effect, Step)]


def answers(effects):
    return [effect[1] for effect in without_steps(effects) if effect[0] == "answer"]


class Port:
    """Keeps what a core asks: steps, and other calls by name with their arguments."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args: self.calls.append(args[0] if name == "step" else (name, *args))

    def take(self):
        calls, self.calls = self.calls, []
        return calls


def fed(core, name, *args, now=0.0):
    """Call a core; return what it asked."""
    timed = {"now": now} if name in {"subscribe", "time_over"} else {}
    getattr(core, name)(*args, **timed)
    return core.port.take()


# ---- who tells


class Publishing:
    """A publisher at a time."""

    def __init__(self, *live):
        self.core = ChangesPublisher(RA, Port())
        self.now = 0.0
        for url in live:
            self.feed("add_local", url)

    def feed(self, name, *args):
        return fed(self.core, name, *args, now=self.now)

    def ask(self, number=1, link=PC):
        return self.feed("subscribe", request(number), RB, link)


def following(*live):
    publishing = Publishing(*live)
    publishing.feed("link_up", RB, PC)
    publishing.ask()
    return publishing


def test_a_request_over_a_live_link_gets_the_list_before_changes():
    """P2P-23, P2P-24, I-C1, I-C2: nothing reported later can be missed, or come before."""
    publishing = Publishing(HA, OBJ)
    publishing.feed("link_up", RB, PC)
    effects = publishing.ask()
    assert steps(effects) == ["requested", "active"]
    follow, answer = without_steps(effects)
    assert follow == ("follow", PC)
    assert (answer[1].code, answer[1].body["value"]) == (200, [HA, OBJ])
    assert publishing.core.followers == (RB,)


def test_a_request_by_a_link_that_never_becomes_live_is_refused_in_time():
    publishing = Publishing()
    publishing.ask()
    publishing.now = publishing.core.deadline()
    assert publishing.now == REPLY_TIMEOUT
    effects = publishing.feed("time_over")
    assert steps(effects) == ["refused"]
    assert [answer.code for answer in answers(effects)] == [503]


def test_arrivals_and_departures_are_reported_once_each():
    """P2P-25, I-C6: add and remove alternate, however often the runtime says so."""
    publishing = following()
    reported = [HA, HA, None, None, HA]
    effects = [
        publishing.feed("remove_local" if url is None else "add_local", HA) for url in reported
    ]
    assert [one for each in effects for one in each] == [
        ("publish", ADD, HA),
        ("publish", REMOVE, HA),
        ("publish", ADD, HA),
    ]


@pytest.mark.parametrize("news", [("link_down", RB)])
def test_a_link_that_is_live_no_longer_ends_it(news):
    """P2P-26, I-C5."""
    publishing = following()
    effects = publishing.feed(*news)
    assert (steps(effects), without_steps(effects)) == (["removed"], [("unfollow", PC)])
    assert publishing.feed("add_local", HA) == []
    assert publishing.feed(*news) == []


def test_an_unsubscription_is_idempotent():
    """M-10."""
    publishing = following()
    leave = ("unsubscribe", request(2, MessageType.UNSUBSCRIBE), RB)
    effects = publishing.feed(*leave)
    assert without_steps(effects)[0] == ("unfollow", PC)
    assert [answer.code for answer in answers(effects)] == [200]
    assert [answer.code for answer in answers(publishing.feed(*leave))] == [200]


# ---- who is notified


def asking():
    core = ChangesFollower(RB, Port())
    return core, fed(core, "link_up", RA, PQ)


def test_reports_before_the_list_are_kept_for_it_in_order():
    """I-C3: the list was made before all of it."""
    core, _ = asking()
    for operation, url in [(ADD, OBJ), (REMOVE, HA), (REMOVE, OBJ), (ADD, OBJ)]:
        assert without_steps(fed(core, "change", RA, PQ, operation, (url,))) == []
    effects = fed(core, "take_list", RA, 1, (HA,))
    assert without_steps(effects) == [("list_entities", RA, (OBJ,), ())]
    assert core.last_reported(RA) == (OBJ,)


def test_a_peer_with_too_many_reports_before_its_list_is_ignored():
    core, _ = asking()
    reported = ("change", RA, PQ, ADD, (HA,))
    ends = [fed(core, *reported) for _ in range(EARLY_CHANGES + 1)][-1]
    assert (steps(ends), without_steps(ends)) == (["syncing", "deleted"], [("unlisten", RA)])
    assert fed(core, "take_list", RA, 1, (HA,)) == []


def test_a_refusing_peer_is_ignored_and_its_earlier_reports_are_forgotten():
    """P2P-23: the link is as good; what may be stale is not believed."""
    core, _ = asking()
    fed(core, "take_list", RA, 1, (HA,))
    fed(core, "link_down", RA)
    fed(core, "link_up", RA, PQ)
    effects = fed(core, "take_list", RA, 2, None, "403")
    assert without_steps(effects) == [("unlisten", RA), ("list_entities", RA, (), (HA,))]
    assert core.last_reported(RA) == core.followed == ()


def test_the_answer_to_an_older_question_and_what_came_by_an_older_link_are_let_be():
    core, _ = asking()
    fed(core, "link_up", RA, f"{PQ}2")
    assert fed(core, "take_list", RA, 1, (HA,)) == []
    assert fed(core, "change", RA, PQ, ADD, (HA,)) == []
    assert fed(core, "change", "hyperty-runtime://c.ex/rc", PQ, ADD, (HA,)) == []


# ---- both


class Two:
    """A publisher, a follower, and what lies between.

    What one registry posts reaches the other in order, except that an answer is brought by a
    task, later than what was reported after it. A link that is lost takes all of it along, but
    for what such a task has already.
    """

    def __init__(self):
        self.publisher = ChangesPublisher(RA, Port())
        self.follower = ChangesFollower(RB, Port())
        self.wire, self.tasks, self.asks = deque(), deque(), deque()
        self.is_up, self.live, self.lived = False, set(), []

    def actions(self):
        """Everything that may happen next."""
        may = ["down" if self.is_up else "up"]
        may += [f"gone {url}" if url in self.live else f"live {url}" for url in (HA, OBJ)]
        may += ["ask"] * bool(self.asks) + ["wire"] * bool(self.wire) + ["task"] * bool(self.tasks)
        return may

    def act(self, action):
        what, _, url = action.partition(" ")
        {
            "up": self._up,
            "down": self._down,
            "live": lambda: self._local("add_local", url),
            "gone": lambda: self._local("remove_local", url),
            "ask": lambda: self._publish("subscribe", request(self.asks.popleft()), RB, PC),
            "wire": self._arrive,
            "task": self._bring,
        }[what]()

    def _up(self):
        self.is_up = True
        self._publish("link_up", RB, PC)
        self._follow("link_up", RA, PQ)

    def _down(self):
        self.is_up = False
        self._publish("link_down", RB)
        self._follow("link_down", RA)
        self.wire.clear()
        self.asks.clear()

    def _local(self, name, url):
        self.live ^= {url}
        self._publish(name, url)

    def _arrive(self):
        reported = self.wire.popleft()
        if isinstance(reported, Message):
            self.tasks.append(reported)
        else:
            _, operation, url = reported
            self._follow("change", RA, PQ, operation, (url,))

    def _bring(self):
        answer = self.tasks.popleft()
        self._follow("take_list", RA, answer.id, tuple(answer.body["value"]))

    def _publish(self, name, *args):
        for effect in without_steps(fed(self.publisher, name, *args)):
            if effect[0] == "answer":
                self.wire.append(effect[1])
            elif effect[0] == "publish":
                self.wire.append(effect)

    def _follow(self, name, *args):
        for effect in without_steps(fed(self.follower, name, *args)):
            if effect[0] == "ask":
                self.asks.append(effect[2])
            elif effect[0] == "list_entities":
                _, _, there, gone = effect
                self.lived += [f"+{url}" for url in there] + [f"-{url}" for url in gone]

    def is_quiet(self):
        return self.is_up and not (self.wire or self.tasks or self.asks)

    def bound(self):
        """Where the links lead by now."""
        bound = set()
        for one in self.lived:
            assert (one[1:] in bound) is (one[0] == "-"), self.lived
            (bound.add if one[0] == "+" else bound.discard)(one[1:])
        return bound

    def key(self):
        wire = tuple(
            tuple(one.body["value"]) if isinstance(one, Message) else one[1:] for one in self.wire
        )
        tasks = tuple((one.id == self._last_ask(), *one.body["value"]) for one in self.tasks)
        early = self.follower._followed.get(RA)
        kept = tuple(early.early) if early is not None else None
        known = (
            self.follower.last_reported(RA),
            self.follower.followed,
            self.publisher.followers,
            kept,
        )
        return self.is_up, frozenset(self.live), wire, tasks, len(self.asks), *known

    def _last_ask(self):
        followed = self.follower._followed.get(RA)
        return None if followed is None else followed.ask


def test_an_empty_list_is_a_list():
    """P2P-24."""
    (answer,) = answers(following().ask(2))
    assert answer.body["value"] == []
