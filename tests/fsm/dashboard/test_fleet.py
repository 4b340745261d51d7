"""The fold of a dashboard: figures, rows and events, all bounded."""

from fsm.dashboard.fleet import Fleet, Watched
from fsm.engine import Step
from specs.limits.dashboard import FRAME_EVENTS, STORY_EVENTS, STORY_MESSAGES, TEXT_CHARS
from specs.message import Message, MessageType
from specs.trace import Op

MN = "domain://msg-node.a.ex"
RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://a.ex/rb"


def session(old, new, cause, runtime=RA, key=""):
    return Step("session", f"{MN}|{runtime}{key}", old, new, cause)


def rows(content):
    return {row[0]: row[1:] for row in content["rows"]}


def watched_fleet():
    fleet = Fleet()
    fleet.is_watched = True
    return fleet


def test_a_runtime_is_a_row_as_long_as_it_has_a_session():
    fleet = watched_fleet()
    fleet.open_link(RA, "link-1", "protofly.v1")
    fleet.take_step(session(None, "open", "opened"), 10.0)
    fleet.row(Op.ADD, "alloc", "hyperty://a.ex/1", RA, 10.0)
    fleet.row(Op.ADD, "subs", "comm://a.ex/1", RA, 10.0)
    assert rows(fleet.news())[RA] == ["open", "protofly.v1", "link-1", 10.0, 1, 1, 1]
    fleet.take_step(session("open", "detached", "link-lost"), 20.0)
    assert rows(fleet.news())[RA][:4] == ["detached", "protofly.v1", "", 20.0]
    fleet.row(Op.DEL, "alloc", "hyperty://a.ex/1", RA, 30.0)
    fleet.take_step(session("detached", "expired", "expire"), 30.0)
    news = fleet.news()
    assert (news["gone"], news["rows"], len(fleet)) == ([RA], [], 0)
    # What goes after its session brings no row back.
    fleet.row(Op.DEL, "subs", "comm://a.ex/1", RA, 30.0)
    assert fleet.news()["rows"] == []


def test_entities_are_counted_where_they_are_and_edges_as_often_as_they_are_taken():
    fleet = watched_fleet()
    fleet.before("registration", {"live": 2})
    fleet.take_step(Step("registration", "u", "live", "disconnected", "disconnect"), 0.0)
    fleet.take_step(session(None, "open", "opened"), 0.0)
    fleet.take_step(session(None, "open", "opened", RB), 0.0)
    fleet.take_step(session("detached", "open", "reopened", "rc"), 0.0)
    machines = fleet.news()["machines"]
    assert machines["registration"]["states"] == {"live": 1, "disconnected": 1}
    # One that was never reported there takes nobody away.
    assert machines["session"]["states"] == {"open": 3}
    assert ["[*]", "opened", "open", 2] in machines["session"]["edges"]


def test_news_are_said_once_and_only_what_has_changed():
    fleet = watched_fleet()
    fleet.take_step(session(None, "open", "opened"), 0.0)
    assert len(fleet.news()["events"]) == 1
    quiet = fleet.news()
    assert (quiet["rows"], quiet["machines"], quiet["events"]) == ([], {}, [])
    assert list(rows(fleet.whole())) == [RA]


def test_events_are_a_ring_and_a_story_is_that_of_one_runtime():
    fleet = watched_fleet()
    for number in range(STORY_EVENTS + 5):
        fleet.row(Op.ADD, "alloc", f"hyperty://a.ex/{number}", RB if number % 5 else RA, 0.0)
    assert len(fleet.news()["events"]) == FRAME_EVENTS
    story = fleet.story(RA, 0, STORY_EVENTS)
    assert 0 < len(story) <= STORY_EVENTS / 5 + 1
    assert {event.runtime for event in story} == {RA}
    assert fleet.story(RA, story[-2].number, 9) == story[-1:]
    assert fleet.story(RA, 0, 3) == story[-3:]


def test_a_record_belongs_to_its_runtime_after_the_session_too():
    fleet = watched_fleet()
    made = Step("registration", "hyperty://a.ex/1", None, "live", "create-live")
    fleet.take_step(made, 0.0, RA)
    fleet.take_step(
        Step("registration", "hyperty://a.ex/1", "live", "disconnected", "disconnect"), 1.0
    )
    assert [event.new for event in fleet.story(RA, 0, 9)] == ["live", "disconnected"]


def test_texts_of_peers_are_cut_off():
    fleet = watched_fleet()
    fleet.row(Op.ADD, "alloc", "x" * 9999, RA, 0.0)
    assert len(fleet.whole()["events"][0]["key"]) == TEXT_CHARS


def test_a_message_belongs_to_a_story_from_when_it_passes_the_link():
    watched = Watched()
    assert watched.ask(RA, 0.0)
    message = Message(1, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://a.ex/2")
    other = Message(2, MessageType.CREATE, "hyperty://a.ex/3", "hyperty://a.ex/2")
    watched.note_message(Op.RCV, other, RB, "", 1.0)
    watched.note_message(Op.RCV, message, RA, "", 1.0)
    watched.note_message(Op.ADMIT, message, "", "", 1.0)
    watched.note_message(Op.XMIT, message, RB, "", 1.0)
    hops = watched.hops(RA, 0)
    assert [(hop.op, hop.runtime) for hop in hops] == [("rcv", RA), ("admit", ""), ("xmit", RB)]
    assert watched.hops(RA, hops[1].number) == hops[2:]
    for number in range(STORY_MESSAGES + 9):
        watched.note_message(
            Op.RCV, Message(number, MessageType.CREATE, "hyperty://a.ex/1", "b"), RA, "", 1.0
        )
    assert len(watched.hops(RA, 0)) == STORY_MESSAGES
