"""What the claims on a group keep of a long trace: what is open, and of each message a little."""

from collections import defaultdict

from fsm.frozen import pickle_state
from fsm.judge.claims import groups
from fsm.judge.process import ProcessJudge
from tests.support.trace.histories import reported

RECORD = 32
"""Bytes that the claims on one node keep of each record at most."""

HANDED_OVER = 400
"""Bytes of evidence of each record at most, which is judged with that of other nodes."""

ALIVE = """
@na
bus add components MN/sm sm
group step group_membership na [*] join joining
group step group_membership na joining admit member
group upd members na g.a.ex|1 version=1
"""
VISIT = """
t {t}
group upd members na g.a.ex|1 version={version}
bus step session MN|RA [*] opened open
bus open L{n} a=MN b=peer kind=websocket
bus session link=L{n} a=MN b=RA
group upd homes RA na|1|{n} version={later}
bus add alloc hyperty://a.ex/h{n} RA
bus step node_subscription O{n}/changes|RA [*] subscribe active
bus step node_subscription O{n}/changes|RA active unsubscribe removed
bus del alloc hyperty://a.ex/h{n} RA
bus step session MN|RA open close closed
bus close L{n}
"""
MESSAGE = """
t {t}
group rcv update {n} HB>RA link=nb>na listener=RA
bus xmit update {n} HB>RA link=L1
bus xmit update {n} RA>HB link=na>nb
"""
STAY = """
bus step session MN|RA [*] opened open
bus session link=L1 a=MN b=RA
group upd homes RA na|1|1 version=2
"""


def kept(story):
    """Judge a trace as a watch does.

    Returns:
        How many records it has, the bytes of state, and those of evidence, key by key.
    """
    judge, lines = ProcessJudge("run", "na"), reported(story + "\ncut")
    for line in lines:
        judge.take(line)
    evidence = defaultdict(list)
    for item in judge.handed_over():
        evidence[item.fold, item.key].append(item)
    claims = [claim for claim in judge._claims if type(claim).__module__ == groups.__name__]
    assert len(claims) == 5
    return (
        len(lines),
        len(pickle_state(claims)),
        sum(len(pickle_state(items)) for items in evidence.values()),
    )


def visits(count):
    return ALIVE + "".join(
        VISIT.format(n=n, t=10 * n, version=2 * n, later=2 * n + 1) for n in range(1, count + 1)
    )


def test_sessions_links_and_addresses_that_are_over_are_not_kept():
    assert kept(visits(1500))[1] <= kept(visits(150))[1] + 4 * RECORD


def test_a_message_between_nodes_takes_a_bounded_part_of_the_state():
    story = ALIVE + STAY + "".join(MESSAGE.format(n=n, t=n / 10) for n in range(5000))
    records, state, evidence = kept(story)
    assert state <= records * RECORD
    assert evidence <= records * HANDED_OVER


def renewals(count):
    renewal = "t {0}\ngroup upd members na g.a.ex|1 version={0}\n"
    return ALIVE + "".join(renewal.format(3 * n) for n in range(1, count + 1))


def test_a_node_without_messages_keeps_no_renewals():
    assert kept(renewals(9000))[1] <= kept(renewals(1500))[1] + 4 * RECORD
