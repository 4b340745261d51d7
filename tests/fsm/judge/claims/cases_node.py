"""Stories of a node: its sessions, addresses and fan-out; and of data objects."""

from tests.fsm.judge.claims.cases import case

_NODE = "bus add components MN/sm sm\n"
_OPEN = "bus step session MN|RA [*] opened open\n"
_LINK = "bus open L1 kind=mn a=MN\n"
_HAS_LINK = "bus session link=L1 a=MN b=RA\n"
_LEFT = "bus step session MN|RA open link-lost detached\n"
_BACK = "bus step session MN|RA detached reopened open\n"
_CLOSED = "bus step session MN|RA open close closed\n"
_EXPIRED = "bus step session MN|RA detached expire expired\n"
_ALLOCATED = "bus step address HA [*] allocate allocated\nbus add alloc HA RA\n"
_RELEASED = "bus step address HA allocated release released\nbus del alloc HA RA\n"
_CAME = "bus rcv read 1 HA>HB link=L1\nbus permit read 1 HA>HB\nbus admit read 1 HA>HB by=RA\n"
_WENT = "bus drop read 1 HA>HB reason=no-target\n"
_IN = _NODE + _LINK + _OPEN + _HAS_LINK + _ALLOCATED
_OUT = _RELEASED + _CLOSED
_ASKED = _IN + _CAME + _WENT + _OUT
_SENT = "bus xmit read 2 HB>HA link=L1\n"
_AWAY = _IN + _LEFT + "t 600\n" + _EXPIRED + _RELEASED

_PASSED_ON = _IN + _CAME + "bus xmit read 1 HA>HB link=L2\n" + _OUT
_TWICE = _IN + _LINK.replace("L1", "L2") + _HAS_LINK.replace("L1", "L2") + "bus close L1\n" + _OUT

_JOINED = (
    "bus step group_membership n1 [*] join joining\n"
    "bus step group_membership n1 joining admit member\n"
)
_FENCED = "bus step group_membership n1 member fence fenced\n"
_WENT_OUT = "bus step group_membership n1 member go left\n"
_AGAIN = _FENCED + "bus step group_membership n1 fenced join joining\n"

SESSIONS = (
    case("I-M1", _ASKED, (_HAS_LINK, "")),
    case("I-M2", _ASKED, (_HAS_LINK, _LEFT + _HAS_LINK + _BACK)),
    case("I-M2", _TWICE + "t 20\n", ("bus close L1\n", "")),
    case("I-M2", _TWICE + "t 20\n", ("bus close L1\n", "t 20\nbus close L1\n")),
    case("I-M3", _IN + _LEFT + _BACK + _OUT, (_BACK + _RELEASED, _RELEASED + _BACK)),
    case("I-M4", _IN + _SENT + _OUT, (_SENT + _OUT, _OUT + _SENT)),
    case("I-B8", _PASSED_ON, ("bus admit read 1 HA>HB by=RA\n", "")),
    case("I-M8", _ASKED, ("bus admit", "bus permit read 1 HA>HB\nbus admit")),
    case("I-M12", _AWAY, ("t 600", "t 599")),
    case("I-M12", _AWAY, ("t 600", "t 606")),
    case("I-M12", _OPEN + _LEFT + _BACK + "t 700\n" + _CLOSED, (_BACK, ""), (_CLOSED, "")),
    case("I-M12", _OPEN + _LEFT + _BACK + "t 700\n" + _CLOSED, (_BACK, "")),
    case(
        "I-M15", _JOINED + _ASKED + _WENT_OUT, (_NODE, _FENCED + _NODE), ("member go", "fenced go")
    ),
    case(
        "I-M15", _JOINED + _ASKED + _WENT_OUT, (_NODE, _AGAIN + _NODE), ("member go", "joining go")
    ),
    case(
        "I-K4",
        _ASKED,
        ("bus rcv", "bus permit read 1 HA>HB\nbus rcv"),
        ("bus permit read 1 HA>HB\nbus admit", "bus authz read 1 HA>HB decision=deny\nbus admit"),
    ),
)

_REGISTERED = (
    _IN.replace("b=RA", "b=RA kind=upstream")
    + "dr step registration HA [*] create-lasting lasting\n"
)
_ENDED = _IN + _CLOSED + _RELEASED + "t 100\n"
_ELSEWHERE = _IN + _CLOSED + _RELEASED + "bus add alloc HA RA\nt 100\nbus del alloc HA RA\n"

ADDRESSES = (
    case("I-A1", _ASKED, (_OUT, _RELEASED + _ALLOCATED + _OUT)),
    case("I-A2", _ASKED, (_CAME + _WENT + _RELEASED, _RELEASED + _CAME + _WENT)),
    case("I-A3", _ASKED, ("admit read 1 HA>HB by=RA", "admit read 1 HA>HB by=RB")),
    case("I-A7", _ENDED, (_RELEASED + "t 100\n", "t 100\n" + _RELEASED)),
    case("I-A7", _ENDED + "cut\n", (_RELEASED + "t 100\n", "t 100\n" + _RELEASED)),
    case("I-A7", _ELSEWHERE, ("bus add alloc HA RA\nt 100", "t 100")),
    case("I-A7", _REGISTERED + _OUT, ("kind=upstream", "kind=protofly.v1")),
    case("I-X2", "bus add subs O1 RA\nbus del subs O1 RA\n", ("bus del subs O1 RA\n", "")),
)

_SUBSCRIBED = "".join(
    f"bus step node_subscription O1/changes|{one} [*] subscribe active\n" for one in ("RA", "RB")
)
_CHANGE = """
bus rcv update 1 O1>O1/changes link=L2
bus permit update 1 O1>O1/changes
bus admit update 1 O1>O1/changes by=RC
bus publish update 1 O1>O1/changes targets=2
bus xmit update 1 O1>O1/changes link=L1
bus xmit update 1 O1>O1/changes link=L3
"""
_NEXT = _CHANGE.replace("update 1", "update 2")
_LAST_XMIT = "bus xmit update {} O1>O1/changes link=L1\n"
_A_LEFT, _B_LEFT = (
    f"bus step node_subscription O1/changes|{one} active unsubscribe removed\n"
    for one in ("RA", "RB")
)
_OWNED = "bus add alloc O1 RC\n"
_FREED = "bus del alloc O1 RC\n"
_PUBLISHED = _NODE + _OWNED + _HAS_LINK + _SUBSCRIBED + _CHANGE + _NEXT + _A_LEFT + _B_LEFT + _FREED
_CARRIED = _PUBLISHED.replace(_LAST_XMIT.format(1), "").replace(
    _LAST_XMIT.format(2),
    "bus xmit update 2 O1>O1/changes link=n1>n2\n"
    "bus xmit update 1 O1>O1/changes link=n1>n2 listener=RA\n",
)
_OUT_IN = """
idm relay execute 1 RA/ua>MN/sm direction=out
idm relay 200 1 MN/sm>RA/ua direction=in
"""
_PART_ASKED = """
bus deliver read 1 RA/ua>MN/sm listener=MN/sm
bus xmit 200 1 MN/sm>RA/ua link=L1
"""

FAN_OUT = (
    case("I-M5", _PUBLISHED, ("targets=2", "targets=1")),
    case("I-M5", _PUBLISHED, ("targets=2", "targets=4")),
    case("I-M7", _PUBLISHED, (_NEXT + _A_LEFT, _A_LEFT + _NEXT.replace("targets=2", "targets=1"))),
    case("I-M11", _OUT_IN, ("relay execute 1", "relay execute 2")),
    case(
        "I-M11",
        _OUT_IN,
        ("direction=in\n", "direction=in\nidm relay 200 1 MN/sm>RA/ua direction=in\n"),
        forbids="an answer of a back end",
    ),
    case("I-M13", _NODE + _PART_ASKED, ("200 1 MN/sm>RA/ua", "200 1 MN/sm>RA/ua from=MN/session")),
    case(
        "I-M14",
        _PUBLISHED,
        (_LAST_XMIT.format(1), ""),
        (_LAST_XMIT.format(2), _LAST_XMIT.format(2) + _LAST_XMIT.format(1)),
    ),
    case("I-M14", _CARRIED, (" listener=RA", "")),
)

_OBSERVED = "HB step observer_copy O1|HB [*] observe syncing\n"
_READ = "HB step observer_copy O1|HB syncing snapshot live\n"
_LOST = "HB step observer_copy O1|HB live changed stale\n"
_READ_ANEW = "HB step observer_copy O1|HB stale snapshot live\n"
_GIVEN_UP = "HB step observer_copy O1|HB live given-up deleted\n"
_RECALLED = (
    "HB step observer_copy O1|HB syncing recalled stale\n"
    "HB apply O1 by=HB version=2\n"
    "HB step observer_copy O1|HB stale given-up deleted\n"
)
_APPLIED = "HB apply O1 by=HB version=2\nHB apply O1 by=HB version=3\n"
_OBSERVER = _OBSERVED + _READ + _APPLIED + _GIVEN_UP

OBJECTS = (
    case("I-D3", _OBSERVER, ("version=3", "version=4")),
    case(
        "I-D3",
        _OBSERVED
        + _READ
        + "HB apply O1 by=HB version=2\n"
        + _LOST
        + _READ_ANEW
        + "HB apply O1 by=HB version=7\n"
        + _GIVEN_UP,
        (_LOST + _READ_ANEW, ""),
    ),
    case("I-D5", _OBSERVER, (_READ + _APPLIED, _APPLIED + _READ)),
    case("I-D7", _OBSERVER, (_APPLIED + _GIVEN_UP, _GIVEN_UP + _APPLIED)),
    case(
        "I-D12",
        _OBSERVER,
        ("version=3", "version=2"),
        forbids="a version of an object to an observer",
    ),
    case(  # a copy that begins anew may begin with what was stored of an older one
        "I-D12",
        _OBSERVER + _OBSERVED + _RECALLED,
        (_GIVEN_UP + _OBSERVED, ""),
        allows="a version of an object to an observer that begins again",
    ),
)
