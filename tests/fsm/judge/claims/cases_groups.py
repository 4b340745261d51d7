"""Stories of the nodes of one group: the one named `na` has the trace of the first process."""

from tests.fsm.judge.claims.cases import case

_ALIVE = """
@{0}
bus add components MN/sm sm
group step group_membership {0} [*] join joining
group step group_membership {0} joining admit member
group upd members {0} g.a.ex|1 version={1}
"""
_GONE = """
@{0}
group step group_membership {0} member go left
"""
_SERVED_LATE = """
t 13
bus xmit update 1 HB>RA link=L1
t 17
bus xmit update 2 HB>RA link=L1
t 19
"""

_HERE = """
@{0}
bus step session MN|RA [*] opened open
bus session link=L1 a=MN b=RA
group upd homes RA {0}|1|{1} version={2}
"""
_LEFT = """
@{0}
bus step session MN|RA open link-lost detached
bus step session MN|RA detached move moved
"""
_CLOSED = "@nb\nbus step session MN|RA open close closed\n"
_TO_RA = "@na\nbus xmit update {} HB>RA link=L1\n"
_RENEWED = "@na\nt 9\ngroup upd members na g.a.ex|1 version={}\nt 15\n"
_BOTH = _ALIVE.format("na", 1) + _ALIVE.format("nb", 2)
_MOVED = (
    _BOTH + _HERE.format("na", 1, 5) + _TO_RA.format(1) + _RENEWED.format(8) + _TO_RA.format(2)
    + _LEFT.format("na") + _HERE.format("nb", 2, 9) + _CLOSED + _GONE.format("na")
    + _GONE.format("nb")
)  # fmt: skip

_SUBSCRIBED = "@{}\nbus step node_subscription O1/changes|RA [*] subscribe active\n"
_UNSUBSCRIBED = "@{}\nbus step node_subscription O1/changes|RA active unsubscribe removed\n"
_GIVEN = """
@nb
group rcv update 7 O1>O1/changes link=na>nb
bus publish update 7 O1>O1/changes targets=1
bus xmit update 7 O1>O1/changes link=L1
"""
_NOT_HERE = (
    ("\n" + _SUBSCRIBED.format("nb"), "\n"),
    ("\n" + _UNSUBSCRIBED.format("nb"), "\n"),
    ("bus publish update 7 O1>O1/changes targets=1\n", ""),
)
_RESUBSCRIBED = (
    _BOTH + _HERE.format("na", 1, 5) + _SUBSCRIBED.format("na") + "@na\n"
    "group xmit update 7 O1>O1/changes link=na>nb\n" + "\n" + _UNSUBSCRIBED.format("na")
    + _LEFT.format("na") + _HERE.format("nb", 2, 9) + "\n" + _SUBSCRIBED.format("nb") + _GIVEN
    + "\n" + _UNSUBSCRIBED.format("nb") + _CLOSED + _GONE.format("na") + _GONE.format("nb")
)  # fmt: skip

_ARRIVED = """
@na
bus rcv update 1 HB>RA link=L2
bus permit update 1 HB>RA
bus admit update 1 HB>RA by=RB
"""
_CROSSED = """
@na
group xmit update 1 HB>RA link=na>nb listener=RA
@nb
group rcv update 1 HB>RA link=na>nb listener=RA
bus xmit update 1 HB>RA link=L1
"""
_BACK = "@na\nbus queue update 1 HB>RA listener=RA\nbus flush update 1 HB>RA\n"
_TWO_COPIES = (
    _BOTH + "@na\nbus add alloc HB RB\n" + _HERE.format("na", 1, 5) + _ARRIVED
    + _TO_RA.format(1) + "\n" + _BACK + _LEFT.format("na") + _HERE.format("nb", 2, 9) + _CROSSED
    + _CLOSED + "@na\nbus del alloc HB RB\n" + _GONE.format("na") + _GONE.format("nb")
)  # fmt: skip

_XMIT = "group xmit update {} HB>HA link=na>nb listener=RA\n"
_RCV = "group rcv update {} HB>HA link=na>nb listener=RA\n"
_ONE_MORE = "@na\n" + _XMIT.format(3)
_ANSWERED = _ONE_MORE + "bus drop update 3 HB>HA reason=session-gone\n"
_SENT = (
    _BOTH + "@na\n" + _XMIT.format(1) + _XMIT.format(2) + "@nb\n" + _RCV.format(1) + _RCV.format(2)
    + "\n@na\n" + _XMIT.format(4) + "@nb\n" + _RCV.format(4) + _GONE.format("na")
    + _GONE.format("nb")
)  # fmt: skip
_OUTAGE = "@{0}\ngroup upd engine {0} 1|0|0\n"
_FIRST_RCV = "@nb\n" + _RCV.format(1)
_LAST_RCV = "@nb\n" + _RCV.format(4)
_ADDRESSED = tuple(
    (f"group {op} update 7", f"group {op} listener=RA update 7") for op in ("xmit", "rcv")
)
_NOT_TAKEN = "@nb\ngroup drop update 3 HB>HA link=na>nb reason=session-gone\n"
_LOST = ("\n@na\n" + _XMIT.format(4), "\n" + _ONE_MORE + "@na\n" + _XMIT.format(4))

GROUPS = (
    case(
        "I-M15",
        _ALIVE.format("na", 1) + "bus session link=L1 a=MN b=RA\nt 13\n"
        "group upd members na g.a.ex|1 version=2\n" + _SERVED_LATE + _GONE.format("na"),
        ("group upd members na g.a.ex|1 version=2\n" + _SERVED_LATE,
         "t 14.5\n" + _SERVED_LATE.replace("t 13\n", "").replace("t 17", "t 20")),
    ),
    case("I-M16", _MOVED, (_RENEWED.format(8), _RENEWED.format(12))),
    case("I-M16", _MOVED, ("nb|1|2 version=9", "nb|1|2 version=5")),
    case("I-M7", _RESUBSCRIBED, *_NOT_HERE),
    case("I-M17", _TWO_COPIES, (_BACK, ""),
         forbids="a message by the former and the present node of a runtime",
         allows="a message by the present node of a runtime that the former could not write"),
    case("I-M17", _TWO_COPIES, (_TO_RA.format(1) + "\n", _TO_RA.format(1) * 2 + "\n"),
         forbids="a message of a group of nodes, to one runtime"),
    case("I-M18", _SENT, _LOST),
    case("I-M18", _SENT, (_RCV.format(1) + _RCV.format(2), _RCV.format(2) + _RCV.format(1))),
    case("I-M18", _SENT, (_RCV.format(4), _RCV.format(4) * 2),
         forbids="a message from node to node"),
)  # fmt: skip

EXCUSED = (
    case("I-M7", _RESUBSCRIBED, *_NOT_HERE, *_ADDRESSED),
    case(
        "I-M17",
        _TWO_COPIES,
        (_BACK, ""),
        (_ARRIVED, _ARRIVED * 2),
        allows="a message of a group of nodes, for each time that it came",
    ),
    case(
        "I-M17",
        _TWO_COPIES,
        (_BACK, ""),
        *(
            (
                f"group {op} update 1 HB>RA link=na>nb listener=RA",
                f"group {op} update 1 HB>RA link=na>nb",
            )
            for op in ("xmit", "rcv")
        ),
    ),
    case("I-M18", _SENT, _LOST, (_LAST_RCV, _OUTAGE.format("na") + _LAST_RCV)),
    case("I-M18", _SENT, _LOST, (_LAST_RCV, _OUTAGE.format("nb") + _LAST_RCV)),
    case("I-M18", _SENT, _LOST, (_FIRST_RCV, _OUTAGE.format("nb") + "t 8\n" + _FIRST_RCV)),
    case("I-M18", _SENT, (_LOST[0], _LOST[1].replace(_ONE_MORE, _ANSWERED))),
    case("I-M18", _SENT, (_LOST[0], _LOST[1].replace(_ONE_MORE, _ONE_MORE + _NOT_TAKEN))),
)
"""What looks as if it broke a claim, and has a reason: what the claim says stands beside it."""
