"""A node's lease by its own clock, and the other members by the engine's word."""

import pytest

from fsm.engine import Step
from fsm.group.kinds import Holder, NodeRow, RowRefusal
from fsm.group.membership import MembershipCore, MembershipPort, PutLease
from fsm.group.row_form import write_row
from fsm.machines.group_membership import GROUP_MEMBERSHIP, State
from specs.limits.group import GROUP_LEASE, GROUP_MARGIN, GROUP_NODES, GROUP_RENEWAL, GROUP_RETRY
from tests.support.link_calls import Calls, Told, is_asked
from tests.support.trace.memory import MemoryTracer

OTHER = NodeRow(Holder("b", 7), "http://b")


tell, asks = Calls(MembershipCore), Calls(MembershipPort)


def member(node="a", address=""):
    return Told(MembershipPort, lambda port: MembershipCore(node, port, address))


def of(effects, name):
    return [one for one in effects if is_asked(one, name)]


def refused(number, row, revision):
    return tell.take_conflict(number, None if row is None else write_row(row), revision)


def put_of(effects):
    (put,) = of(effects, "put_lease")
    return put.lease


def asked(core, *others, boot=1, now=0.0):
    """Join a group that has other members; return the request to write the node's row."""
    put = put_of(core.tell(tell.join(boot), now))
    core.tell(tell.begin_watch(), now)
    for revision, other in enumerate(others, 1):
        core.tell(tell.take_node(other.holder.node, other, revision), now)
    assert core.tell(tell.end_list(), now) == []
    return put


def written(core, put, revision, now=0.0):
    """Answer the request, and have the watch bring the row; return what is to be done."""
    effects = core.tell(tell.take_written(put.number, revision), now)
    return [*effects, *core.tell(tell.take_node(core.node, put.row, revision), now)]


def joined(now=0.0, core=None):
    """A member whose row has revision 1."""
    core = core or member("a", "http://a")
    put = asked(core, now=now)
    assert of(written(core, put, 1, now), "admit") == [asks.admit()]
    return core


def test_a_node_joins_by_a_row_that_was_not_there():
    core = member("a", "http://a")

    put = asked(core, now=5.0)

    assert (put.row, put.expected) == (NodeRow(Holder("a", 1), "http://a"), 0)
    assert core.state is State.JOINING
    assert not core.may_write(5.0)
    written(core, put, 3, 5.5)
    assert core.state is State.MEMBER
    assert core.may_write(5.5)
    assert core.is_live(Holder("a", 1))
    assert not core.is_live(Holder("a", 2))


def test_a_lease_is_renewed_with_the_revision_known():
    core = joined()

    assert core.deadline() == GROUP_RENEWAL
    assert core.tell(tell.tick(), GROUP_RENEWAL - 0.1) == []
    put = put_of(core.tell(tell.tick(), GROUP_RENEWAL))
    assert put.expected == 1
    core.tell(tell.take_written(put.number, 4), GROUP_RENEWAL + 1)
    assert core.deadline() == 2 * GROUP_RENEWAL
    assert put_of(core.tell(tell.tick(), 2 * GROUP_RENEWAL)).expected == 4


@pytest.mark.parametrize("delay", [0.0, 2.5, 5.9])
def test_a_node_is_fenced_before_its_lease_can_have_run_out_however_late_an_answer_was(delay):
    core = joined()
    put = put_of(core.tell(tell.tick(), GROUP_RENEWAL))
    core.tell(tell.take_written(put.number, 2), GROUP_RENEWAL + delay)
    over = GROUP_RENEWAL + GROUP_LEASE - GROUP_MARGIN
    if core.deadline() < over:
        core.tell(tell.tick(), core.deadline())  # nobody answers the next one

    assert core.deadline() == over
    assert core.may_write(over - 0.01)
    assert not core.may_write(over)
    assert of(core.tell(tell.tick(), over), "fence")
    assert core.state is State.FENCED


def test_a_process_that_was_stopped_writes_nothing_though_no_timer_came():
    core = joined()
    assert not core.may_write(1_000.0)


def test_whatever_comes_first_after_a_stop_finds_the_node_fenced():
    core = joined()
    assert of(core.tell(tell.take_node("b", OTHER, 9), 1_000.0), "fence")


@pytest.mark.parametrize("state", [State.MEMBER, State.LEAVING])
def test_a_lease_lasts_as_long_as_the_table_says(state, monkeypatch):
    monkeypatch.setattr("specs.limits.group.GROUP_TERM", 1.5)
    core = joined()
    if state is State.LEAVING:
        put = put_of(core.tell(tell.leave(), 0.0))
        core.tell(tell.take_written(put.number, 2), 0.0)

    assert (core.state, core.deadline()) == (state, 1.5)


def test_an_answer_that_comes_late_still_counts_from_its_request():
    """The engine has made it, so the lease never ended."""
    core = joined()
    put = put_of(core.tell(tell.tick(), GROUP_RENEWAL))
    late = GROUP_LEASE - GROUP_MARGIN + 0.5

    (due,) = core.tell(tell.take_written(put.number, 2), late)
    assert due.lease.expected == 2
    assert core.state is State.MEMBER


def test_an_admission_that_comes_too_late_is_renewed_first():
    core = member("a")
    first = asked(core)

    again = put_of(written(core, first, 1, 20.0))
    assert again.expected == 1
    assert core.state is State.JOINING
    assert of(written(core, again, 2, 20.1), "admit")


def test_a_refusal_that_is_older_than_the_row_of_the_node_does_not_undo_it():
    """The first write came twice: before and after the row of the process before had gone."""
    core = member("a")
    own, before = NodeRow(Holder("a", 2)), NodeRow(Holder("a", 1))
    first = put_of(core.tell(tell.join(2), 0.0))
    core.tell(tell.begin_watch(), 0.1)
    core.tell(tell.take_node("a", own, 5), 0.2)
    core.tell(refused(first.number, before, 1), 0.3)
    core.tell(tell.end_list(), 0.4)
    again = put_of(core.tell(tell.tick(), 0.3 + GROUP_RENEWAL))
    renewal = put_of(core.tell(refused(again.number, own, 5), 3.4))
    assert asks.admit() in core.tell(tell.take_written(renewal.number, 6), 3.5)


def test_an_admission_whose_row_has_gone_meanwhile_begins_with_another_row():
    core = member("a")
    first = asked(core)
    again = put_of(written(core, first, 1, 20.0))

    core.tell(refused(again.number, None, 2), 20.1)
    third = put_of(core.tell(tell.tick(), 20.1 + GROUP_RENEWAL))
    assert third.expected == 0
    assert not of(core.tell(tell.take_written(third.number, 3), 23.2), "admit")
    core.tell(tell.take_node("a", None, 2), 23.2)
    assert of(core.tell(tell.take_node("a", third.row, 3), 23.2), "admit")


def test_a_row_that_no_watch_brings_is_dropped_and_written_anew():
    """It went, and came again with the same content, while the watch was broken."""
    core = member("a")
    first = asked(core)
    core.tell(tell.take_written(first.number, 4), 0.1)
    renewal = put_of(core.tell(tell.tick(), GROUP_RENEWAL))
    assert renewal.expected == 4

    dropped, again = core.tell(tell.take_written(renewal.number, 5), 3.1)
    assert dropped == asks.drop_lease("node/a", 5)
    again = again.lease
    assert again == PutLease(again.number, first.row, 0)
    assert core.tell(tell.take_node("a", first.row, 5), 3.2) == []  # the one before
    assert core.tell(tell.take_node("a", None, 6), 3.2) == []
    assert core.tell(tell.take_written(again.number, 7), 3.3) == []
    assert of(core.tell(tell.take_node("a", first.row, 7), 3.4), "admit")


def test_a_row_is_written_anew_again_and_again_but_not_each_time():
    core = member("a")
    put, now, dropped = asked(core), 0.0, []
    for revision in range(1, 9):
        effects = core.tell(tell.take_written(put.number, revision), now)
        dropped += [revision for _ in of(effects, "drop_lease")]
        now += 0 if of(effects, "put_lease") else GROUP_RENEWAL
        put = put_of(effects if of(effects, "put_lease") else core.tell(tell.tick(), now))
    assert dropped == [2, 4, 6, 8]


def test_a_row_that_comes_before_it_is_renewed_is_not_written_anew():
    core = member("a")
    put = asked(core)
    core.tell(tell.take_silence(put.number), 1.0)
    again = put_of(core.tell(tell.tick(), 1.0 + GROUP_RETRY))
    renewal = put_of(core.tell(refused(again.number, put.row, 2), 2.0))
    assert core.tell(tell.take_written(renewal.number, 3), 2.1) == []
    assert of(core.tell(tell.take_node("a", put.row, 3), 2.2), "admit")


def test_a_renewal_of_unknown_outcome_is_made_again_and_recognised():
    core = joined()
    put = put_of(core.tell(tell.tick(), GROUP_RENEWAL))
    assert core.tell(tell.take_silence(put.number), 4.0) == []
    again = put_of(core.tell(tell.tick(), 4.0 + GROUP_RETRY))
    assert again.expected == 1

    mine = NodeRow(core.holder, "http://a")
    renewed = put_of(core.tell(refused(again.number, mine, 2), 5.0))
    assert renewed.expected == 2
    assert core.state is State.MEMBER


@pytest.mark.parametrize("core", [joined(), member("a")], ids=["member", "joining"])
def test_a_node_renews_its_lease_at_once_when_the_engine_answers_again(core):
    first = (tell.tick(), GROUP_RENEWAL) if core.state else (tell.join(1), 3.0)
    put = put_of(core.tell(*first))
    core.tell(tell.take_silence(put.number), 3.0)
    assert not of(core.tell(tell.tick(), 3.1), "put_lease")

    again = put_of(core.tell(tell.renew(), 3.1))
    assert (again.row, again.expected) == (put.row, put.expected)
    assert not of(core.tell(tell.renew(), 3.2), "put_lease")


@pytest.mark.parametrize("last", [tell.go(), tell.take_node("a", None, 5)])
def test_a_node_that_has_no_lease_renews_none(last):
    core = joined()
    core.tell(last, 1.0)
    assert not of(core.tell(tell.renew(), 2.0), "put_lease")


def test_a_join_of_unknown_outcome_is_recognised_too():
    core = member("a")
    put = asked(core)
    core.tell(tell.take_silence(put.number), 1.0)
    again = put_of(core.tell(tell.tick(), 1.0 + GROUP_RETRY))

    renewed = put_of(core.tell(refused(again.number, NodeRow(core.holder), 2), 2.0))
    assert (renewed.expected, core.state) == (2, State.JOINING)
    assert of(written(core, renewed, 3, 2.1), "admit")


def test_a_join_waits_until_an_earlier_process_of_its_id_is_gone():
    core = member("a")
    put = put_of(core.tell(tell.join(2), 0.0))
    earlier = NodeRow(Holder("a", 1))

    assert core.tell(refused(put.number, earlier, 5), 0.1) == [asks.wait_for_id(Holder("a", 1))]
    assert core.tell(tell.take_node("a", earlier, 5), 0.2) == []
    assert put_of(core.tell(tell.take_node("a", None, 6), 0.3)).expected == 0


def test_without_news_of_it_the_join_is_tried_again_and_said_once():
    core = member("a")
    put = put_of(core.tell(tell.join(2), 0.0))
    core.tell(refused(put.number, NodeRow(Holder("a", 1)), 5), 0.0)

    again = put_of(core.tell(tell.tick(), GROUP_RENEWAL))
    assert core.tell(refused(again.number, NodeRow(Holder("a", 1)), 8), 3.1) == []


LOSSES = {
    "its lease has run out": lambda put: refused(put.number, None, 9),
    "another process has its id": lambda put: refused(put.number, NodeRow(Holder("a", 99)), 9),
    "a row that nobody can read": lambda put: tell.take_conflict(put.number, b"{", 9),
    "its own row is older": lambda put: refused(put.number, NodeRow(Holder("a", 1)), 1),
    "news: gone": lambda put: tell.take_node("a", None, 2),
    "news: another": lambda put: tell.take_node("a", NodeRow(Holder("a", 99)), 2),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_a_node_that_lost_its_row_is_fenced(loss):
    core = joined()
    put = put_of(core.tell(tell.tick(), GROUP_RENEWAL))

    assert of(core.tell(loss(put), 4.0), "fence")
    assert core.tell(tell.take_written(put.number, 10), 4.1) == []
    assert core.state is State.FENCED
    assert core.deadline() == float("inf")


def test_news_of_its_own_earlier_row_fences_no_member():
    core = joined()
    put = put_of(core.tell(tell.tick(), GROUP_RENEWAL))
    core.tell(tell.take_written(put.number, 5), 3.1)

    assert core.tell(tell.take_node("a", None, 4), 3.2) == []
    assert core.tell(tell.take_node("a", NodeRow(core.holder), 5), 3.2) == []
    assert core.tell(tell.take_node("a", NodeRow(Holder("a", 8)), 2), 3.2) == []
    assert core.state is State.MEMBER


def test_a_fenced_node_joins_as_another_process():
    core = joined()
    core.tell(tell.take_node("a", None, 2), 1.0)

    put = asked(core, boot=2, now=1.5)
    assert (put.row.holder, put.expected) == (Holder("a", 2), 0)
    written(core, put, 3, 1.6)
    assert core.is_live(Holder("a", 2))
    assert not core.is_live(Holder("a", 1))


def test_a_node_that_leaves_says_so_and_keeps_its_lease_until_it_is_gone():
    core = joined()

    put = put_of(core.tell(tell.leave(), 1.0))
    assert put.row.is_leaving
    assert core.may_write(1.0)
    core.tell(tell.take_written(put.number, 2), 1.1)
    effects = core.tell(tell.go(), 2.0)
    assert of(effects, "drop_lease") == [asks.drop_lease("node/a", 2)]
    assert core.state is State.LEFT
    assert core.tell(tell.go(), 2.0) == []


def test_a_lease_that_ends_while_the_node_leaves_ends_all():
    core = joined()
    core.tell(tell.leave(), 1.0)

    effects = core.tell(tell.tick(), 100.0)
    assert of(effects, "fence")
    assert core.state is State.LEFT


# ---- the others


def test_members_come_and_go_by_the_engines_word():
    core = joined()
    later = NodeRow(Holder("b", 8), "http://b")

    assert core.tell(tell.take_node("b", OTHER, 2), 0.0) == [asks.add_node(OTHER)]
    assert core.tell(tell.take_node("b", OTHER, 3), 0.0) == []
    assert core.is_live(OTHER.holder)
    replaced = [asks.remove_node(OTHER.holder), asks.add_node(later)]
    assert core.tell(tell.take_node("b", later, 4), 0.0) == replaced
    assert core.tell(tell.take_node("b", None, 5), 0.0) == [asks.remove_node(later.holder)]
    assert core.tell(tell.take_node("b", None, 5), 0.0) == []
    assert not core.is_live(later.holder)


def test_a_member_that_says_that_it_leaves_is_no_other_process():
    core = joined()
    core.tell(tell.take_node("b", OTHER, 2), 0.0)
    leaving = NodeRow(OTHER.holder, OTHER.address, is_leaving=True)

    assert core.tell(tell.take_node("b", leaving, 3), 0.0) == [asks.add_node(leaving)]


def test_nothing_is_taken_in_from_a_process_that_has_lost_its_lease():
    """I-B7: what it had sent before comes after what its runtimes have sent by others since."""
    core = joined()
    later, left = NodeRow(Holder("b", 8)), NodeRow(Holder("c", 1), is_leaving=True)
    for revision, row in enumerate([OTHER, later, left], 2):
        core.tell(tell.take_node(row.holder.node, row, revision), 0.0)
    core.tell(tell.take_node("c", None, 5), 0.0)

    assert not core.takes_in(OTHER.holder)
    assert core.takes_in(later.holder)
    assert core.takes_in(left.holder)  # it had sent all before
    assert core.takes_in(Holder("unknown", 1))  # its row may be on its way
    core.tell(tell.take_node("b", None, 6), 0.0)
    assert not core.takes_in(later.holder)


def test_a_node_without_a_lease_takes_nothing_in():
    core = member("a")
    core.tell(tell.join(1), 0.0)
    assert not core.takes_in(OTHER.holder)
    core = joined()
    core.tell(tell.take_node("b", OTHER, 2), 0.0)
    core.tell(tell.tick(), GROUP_LEASE)
    assert not core.takes_in(OTHER.holder)


def test_a_group_has_only_so_many_nodes():
    core = joined()
    effects = []
    for number in range(GROUP_NODES + 1):
        row = NodeRow(Holder(f"n{number}", 1))
        effects += core.tell(tell.take_node(f"n{number}", row, number + 2), 0.0)

    assert len(core.others) == GROUP_NODES - 1
    late = [f"node/n{number}" for number in (GROUP_NODES - 1, GROUP_NODES)]
    assert effects[-2:] == [asks.refuse_row(key, RowRefusal.TOO_MANY) for key in late]


FULL = [NodeRow(Holder(f"n{number}", 1)) for number in range(GROUP_NODES)]


def test_a_node_that_finds_as_many_others_as_a_group_has_is_no_member_and_says_so():
    core = member("a")
    put = asked(core, *FULL)

    assert core.tell(tell.take_written(put.number, 100), 0.1) == []
    turned_away = [asks.drop_lease("node/a", 100), asks.wait_for_room()]
    assert core.tell(tell.take_node("a", put.row, 100), 0.2) == turned_away
    assert core.state is State.JOINING
    assert core.is_turned_away
    for _ in range(3):  # it asks nothing of the engine as long as it is so, and says it once
        assert core.tell(tell.tick(), core.deadline()) == []


def test_the_last_place_of_a_group_is_taken():
    core = member("a")
    put = asked(core, *FULL[1:])
    assert of(written(core, put, 100), "admit")


def test_a_node_that_is_turned_away_tries_again_when_another_has_gone():
    core = member("a")
    written(core, asked(core, *FULL), 100)
    core.tell(tell.take_node("a", None, 101), 0.2)

    put = put_of(core.tell(tell.take_node("n7", None, 102), 60.0))
    assert (put.expected, core.is_turned_away) == (0, False)
    assert of(written(core, put, 103, 60.1), "admit")


def test_of_two_that_ask_for_the_last_place_the_first_that_the_engine_has_written_gets_it():
    cores = [member(name) for name in "ab"]
    puts = [asked(core, *FULL[1:]) for core in cores]
    outcomes = []
    for core in cores:
        for revision, put in enumerate(puts, 100):
            effects = core.tell(tell.take_node(put.row.holder.node, put.row, revision), 0.0)
            if put.row.holder == core.holder:
                outcomes.append(effects)
    assert outcomes == [[], [asks.drop_lease("node/b", 101), asks.wait_for_room()]]
    assert of(cores[0].tell(tell.take_written(puts[0].number, 100), 0.1), "admit")


def test_a_row_that_comes_before_all_others_are_known_is_no_admission_yet():
    """The first rows of a watch come by the revisions that they have now."""
    core = member("a")
    put = put_of(core.tell(tell.join(1), 0.0))
    core.tell(tell.begin_watch(), 0.0)
    assert written(core, put, 1) == []
    for revision, other in enumerate(FULL, 2):
        core.tell(tell.take_node(other.holder.node, other, revision), 0.0)
    assert of(core.tell(tell.end_list(), 0.0), "wait_for_room")


def test_a_watch_that_began_before_a_node_joined_says_nothing_of_its_row():
    core = joined()
    core.tell(tell.take_node("a", None, 2), 1.0)
    put = put_of(core.tell(tell.join(2), 1.5))

    core.tell(tell.end_list(), 1.5)
    assert written(core, put, 3, 1.6) == []
    core.tell(tell.begin_watch(), 1.7)
    assert of(core.tell(tell.end_list(), 1.8), "admit")


def test_exactly_one_member_tidies_up_and_each_has_a_share():
    names = ["a", "b", "c"]
    cores = {name: joined(core=member(name)) for name in names}
    for name, core in cores.items():
        for other in set(names) - {name}:
            core.tell(tell.take_node(other, NodeRow(Holder(other, 1)), 1), 0.0)
    keys = [f"session/r{number}" for number in range(300)]

    tidiers = [[name for name in names if cores[name].tidies(key)] for key in keys]
    assert all(len(one) == 1 for one in tidiers)
    assert all(sum(one == [name] for one in tidiers) > 50 for name in names)
    # With a node less, only its share goes to others.
    for name in ("a", "b"):
        cores[name].tell(tell.take_node("c", None, 9), 0.0)
    left = [[name for name in ("a", "b") if cores[name].tidies(key)] for key in keys]
    assert all(len(one) == 1 for one in left)
    assert all(now == then for now, then in zip(left, tidiers, strict=True) if then != ["c"])


def test_one_that_is_no_member_tidies_nothing():
    assert not member("a").tidies("session/r")


# ---- the machine

PATHS = {
    "leaves": (tell.leave(), tell.go()),
    "goes at once": (tell.go(),),
    "is fenced and comes back": (tell.take_node("a", None, 9), tell.join(2), tell.go()),
    "is fenced for good": (tell.take_node("a", None, 9), tell.go()),
    "is fenced while it leaves": (tell.leave(), tell.take_node("a", None, 9)),
}


def test_these_are_all_paths_of_a_membership():
    taken = set()
    for number, path in enumerate(PATHS.values()):
        tracer = MemoryTracer()
        core = member(f"a{number}")
        steps = core.tell(tell.join(1), 0.0)
        put = put_of(steps)
        core.tell(tell.begin_watch(), 0.0)
        core.tell(tell.end_list(), 0.0)
        steps += written(core, put, 1)
        for one in path:
            is_row = is_asked(one, "take_node")
            call = tell.take_node(core.node, one.row, one.revision) if is_row else one
            steps += core.tell(call, 0.1)
        for each in (one for one in steps if isinstance(one, Step)):
            tracer.step("group", each)
            taken.add((each.old, each.cause, each.new))

    rows = {(row.source, row.trigger, row.target) for row in GROUP_MEMBERSHIP.rows}
    assert taken == rows
