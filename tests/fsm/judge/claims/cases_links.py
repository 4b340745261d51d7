"""Stories of ways that are found, of stubs, and of direct links."""

from tests.fsm.judge.claims.cases import ASKED, RUNTIME, case

_SERVICE = """
bus take read 1 HA>DR
registry start DR
registry done DR SA
bus drop read 1 HA>DR reason=no-target
"""
_REACHED = """
registry add p2p RB created None HC
registry upd p2p RB live PQ HC
bus take read 1 HA>HC
registry start HC
registry done HC PQ
bus drop read 1 HA>HC reason=no-target
"""
_WAITING = """
registry add stubs a.ex SA live
registry add p2p RB in-progress PQ HC
bus take read 1 HA>HC
registry start HC
registry done HC SA
bus drop read 1 HA>HC reason=no-target
"""
_PQ_LIVE = """
PQ step p2p_connection RA|RB|requester|PQ [*] started created
PQ step p2p_connection RA|RB|requester|PQ created object-returned in-progress
PQ step p2p_connection RA|RB|requester|PQ in-progress established live
"""
_SA_LIVE = """
stub:SA step stub_connection SA [*] constructed created
stub:SA step stub_connection SA created connect in-progress
stub:SA step stub_connection SA in-progress established live
"""
_ROW_IS_LATE = _PQ_LIVE + "t 10\n" + _REACHED.replace("upd p2p RB live", "upd p2p RB in-progress")
_STUB_IS_LATE = _SA_LIVE + _WAITING.replace("stubs a.ex SA live", "stubs a.ex SA in-progress")
_ONLY_DIRECT = _SA_LIVE + _WAITING.replace("done HC SA", "done HC kind=direct")
_PQ_LOST = "PQ step p2p_connection RA|RB|requester|PQ live connection-lost disconnected\n"
_ROW_STAYS = _PQ_LIVE + _PQ_LOST + _REACHED.replace("bus take", "t 4\nbus take")
_OF_ANOTHER_DOMAIN = """
bus add components MN/sm sm
bus open L1 kind=mn a=MN
bus step session MN|RA [*] opened open
bus session link=L1 a=MN b=RA
bus rcv read 1 RA/ua>domain://registry.b.ex link=L1
bus permit read 1 RA/ua>domain://registry.b.ex
bus admit read 1 RA/ua>domain://registry.b.ex by=RA
bus drop read 1 RA/ua>domain://registry.b.ex reason=no-target
"""
_OF_ITS_OWN = _OF_ANOTHER_DOMAIN.replace("registry.b.ex", "registry.a.ex")
_CRASHED = "loader step stub_deployment SA deploying load-failed deployment-failed\n"
_FLIGHT = f"""
registry add stubs a.ex SA deploying
loader step stub_deployment SA [*] load deploying
{_CRASHED}registry upd stubs a.ex SB deploying
"""
_SENT = "x xmit read 1 HA>HC stub=SA link=L1 seq=1 via=SA\n"
_WAITS = "stub:SA queue read 1 HA>HC\n"
_LEAVES = "stub:SA flush read 1 HA>HC\n" + _SENT
_REPEATED = "bus submit read 1 HA>HC by=HA\n"
_GIVEN = """bus take read 1 HA>HC
bus deliver read 1 HA>HC listener=minibus:SA
minibus:SA deliver read 1 HA>HC listener=SA
"""
_ANEW = _WAITS + _LEAVES
_AGAIN = _WAITS + _LEAVES.replace("L1", "L2") + _ANEW

RESOLUTION = (
    case("I-R1", _SERVICE, ("done DR SA", "done DR PQ"), before=RUNTIME),
    case("I-R2", _REACHED, ("registry upd p2p RB live PQ HC\n", ""), before=RUNTIME),
    case("I-R2", _ROW_STAYS, ("t 4", "t 6")),
    case("I-R3", _PQ_LIVE + _REACHED, ("done HC PQ", "done HC SA kind=reach")),
    case("I-R3", _ROW_IS_LATE, ("done HC PQ", "done HC SA kind=reach")),
    case("I-R4", _SA_LIVE + _WAITING, ("done HC SA", "done HC")),
    case("I-R4", _STUB_IS_LATE, ("done HC SA", "done HC")),
    case("I-R4", _ONLY_DIRECT, ("done HC kind=direct", "done HC kind=reach")),
    case("I-R5", _OF_ITS_OWN, ("components MN/sm", "components domain://msg-node.c.ex/sm")),
    case("I-R5", _OF_ANOTHER_DOMAIN, ("MN/sm", "domain://msg-node.c.ex/sm")),
    case("I-R6", _FLIGHT, (_CRASHED, "")),
    case(
        "I-R7",
        _SERVICE.replace("registry done", "t 100\nregistry done"),
        ("registry done DR SA\n", ""),
        before=RUNTIME,
    ),
    case(
        "I-R9",
        _SENT + "x xmit read 2 HA>HC stub=SA link=L1 seq=2 via=SA\n",
        ("xmit read 2", "xmit read 1"),
    ),
    case("I-R9", 2 * _WAITS + 2 * _LEAVES, (2 * _LEAVES, 2 * _LEAVES + _SENT)),
    case(
        "I-R9",
        _AGAIN,
        (_ANEW, _ANEW + _SENT),
        allows="a message in the queue of a stub, by its next link",
    ),
    case("I-R9", _WAITS + _REPEATED + _LEAVES + _SENT, (_LEAVES, _LEAVES + _SENT)),
    case("I-R9", 2 * _GIVEN + 2 * _SENT, (2 * _SENT, 3 * _SENT)),
    case(
        "I-R9",
        2 * (_GIVEN + _SENT),
        (_SENT, 2 * _SENT),
        forbids="a message by one link, more often than the stub got it",
    ),
)

_CREATED, _BEGUN = (
    "stub:SA step stub_connection SA [*] constructed created\n",
    "stub:SA step stub_connection SA created connect in-progress\n",
)
_LIVE = "stub:SA step stub_connection SA in-progress established live\n"
_FIRST, _SECOND, _THIRD = (
    f"bus take update {n} SA>SA/status\nbus deliver update {n} SA>SA/status listener=r\n"
    for n in (1, 2, 3)
)
_DEPLOYED = """
bus add listeners RA/ua loader
loader step stub_deployment SA [*] load deploying
bus add listeners SA/status r
"""
_DEPLOYED_TWICE = """load deploying
loader step stub_deployment SA [*] load deploying
"""
_STUB = _DEPLOYED + _CREATED + _FIRST + _BEGUN + _SECOND + _LIVE + _THIRD
_QUEUED = "".join(f"stub:SA queue read {n} HA>HC\n" for n in (1, 2))
_RELEASED = "".join(f"stub:SA flush read {n} HA>HC\n" for n in (1, 2))
_REVERSED = "".join(f"stub:SA flush read {n} HA>HC\n" for n in (2, 1))
_EMPTIED = (
    _QUEUED
    + """
stub:SA queue subscribe 3 RA/sm>MN/sm
stub:SA queue update 4 RA/registry>DR
"""
)
_RENEWING = "stub:SA step node_link SA opening session-emptied renewing\n"
_RENEWED = (
    _RENEWING
    + "stub:SA flush subscribe 3 RA/sm>MN/sm\nstub:SA flush update 4 RA/registry>DR\n"
    + "stub:SA step node_link SA renewing renewed open\n"
    + _RELEASED
)
_OTHERS_REVERSED = _RENEWED.replace(_RELEASED, _REVERSED)

STUBS = (
    case(
        "I-S3",
        "bus take update 1 HA>HA/status\nbus drop update 1 HA>HA/status reason=x\n",
        ("update 1 HA>HA/status", "update 1 HA>HC/status"),
        ("drop update 1 HA>HA/status", "drop update 1 HA>HC/status"),
        before=RUNTIME,
    ),
    case("I-S4", _STUB + "t 100\n", (_SECOND, "")),
    case(
        "I-S4",
        _STUB,
        (_THIRD, _THIRD + _THIRD.replace("3", "4")),
        forbids="a status event of one step of a stub",
    ),
    case(
        "I-S5",
        _STUB + "registry add stubs a.ex SA created\nregistry upd stubs a.ex SA live\n",
        (
            "add stubs a.ex SA created\nregistry upd stubs a.ex SA live",
            "add stubs a.ex SA live\nregistry upd stubs a.ex SA created",
        ),
    ),
    case("I-S6", _STUB, ("load deploying\n", _DEPLOYED_TWICE)),
    case(
        "I-S7",
        _STUB,
        (
            "bus add listeners SA/status r\n" + _CREATED,
            _CREATED + "bus add listeners SA/status r\n",
        ),
    ),
    case("I-S7", _STUB, ("loader step stub_deployment SA [*] load deploying\n", "")),
    case("I-S8", _LIVE + _SENT, (_LIVE, _BEGUN)),
    case("I-S9", _QUEUED + _RELEASED, (_RELEASED, _REVERSED)),
    case("I-S9", _EMPTIED + _RENEWED, (_RENEWING, ""), before=RUNTIME),
    case("I-S9", _EMPTIED + _RENEWED, (_RENEWED, _OTHERS_REVERSED), before=RUNTIME),
)

_REQUESTED = "PQ step p2p_connection RA|RB|requester|PQ [*] started created\n"
_MADE = "PQ step p2p_connection RA|RB|requester|PQ created object-returned in-progress\n"
_UP = "PQ step p2p_connection RA|RB|requester|PQ in-progress established live\n"
_FAILED = "PQ step p2p_connection RA|RB|requester|PQ created refused failed\n"
_AGAIN = "PQ step p2p_connection RA|RB|requester|PQ/2 [*] started created\n"
_INVITED = "PH step p2p_connection RB|RA|handler|PC [*] started created\n"
_REFUSED = "PH step p2p_connection RB|RA|handler|PC created refused failed\n"
_ANOTHER = "PH step p2p_connection RB|RA|handler|PC2 [*] started created\n"
_ASKED_BACK = "PH step p2p_connection RA|RB|handler|PC [*] started created\n"
_TURNED_DOWN = "PH step p2p_connection RA|RB|handler|PC created refused failed\n"
_LET_UP = "PH step p2p_connection RA|RB|handler|PC in-progress established live\n"
_OPEN_A = "PQ open L1 kind=p2p a=RA b=RB stub=PQ\n"
_OPEN_B = "PH open L1 kind=p2p a=RB b=RA stub=PC\n"
_HOME_A, _HOME_B = "@ra\nbus add listeners RA/ua loader\n", "@rb\nbus add listeners RB/ua loader\n"
_THERE = "".join(f"PQ xmit read {n} HA>HB stub=PQ link=L1 seq={n} via=PQ\n" for n in (1, 2))
_HERE = "".join(f"PH rcv read {n} HA>HB stub=PC link=L1 seq={n} via=PQ|PC\n" for n in (1, 2))
_LAST_HERE = _HERE.splitlines(keepends=True)[1]
_CARRIED = _HOME_A + _OPEN_A + _THERE + _HOME_B + _OPEN_B + _HERE
_BUS_LISTENS = "bus add listeners PC minibus:PH\n"
_PH_LISTENS = "minibus:PH add listeners PC PH\n"
_HANDLED = _HOME_B + _INVITED.replace("[*] started created", "in-progress established live")
_GONE = """
registry add p2p RA live PC HA
registry del p2p RA
bus del listeners PC minibus:PH
t 100
"""
_ROUTED = """
bus take read 1 HB>HA
registry add p2p RA live PC HA
registry start HA
registry done HA PC
bus drop read 1 HB>HA reason=no-target
"""

_YIELDED = """
PQ step p2p_connection RB|RA|requester|PQ [*] started created
PQ step p2p_connection RB|RA|requester|PQ created object-returned in-progress
PH step p2p_connection RB|RA|handler|PC [*] started created
PQ step p2p_connection RB|RA|requester|PQ in-progress yielded yielding
PH step p2p_connection RB|RA|handler|PC created refused failed
PQ step p2p_connection RB|RA|requester|PQ yielding resumed in-progress
PQ step p2p_connection RB|RA|requester|PQ in-progress established live
"""
"""The link of the smaller runtime has failed, so the other one may come up."""

_TO_ALL = """
bus add listeners O1/changes minibus:PH
bus take delete 1 O1/subscription>O1/changes
bus deliver delete 1 O1/subscription>O1/changes listener=minibus:PH
bus deliver delete 1 O1/subscription>O1/changes listener=minibus:PH
bus take 200 1 O1/changes>O1/subscription
bus callback 200 1 O1/changes>O1/subscription
"""

_ANSWERS = """
@ra
x xmit 404 1 HB>HA link=L1 digest=a
@rb
x xmit 404 1 HB>HA link=L2 digest=b
@n
x rcv 404 1 HB>HA link=L1 digest=a
x xmit 404 1 HB>HA link=L3 digest=a
x rcv 404 1 HB>HA link=L2 digest=b
x xmit 404 1 HB>HA link=L3 digest=b
"""
"""Two observers answer the same request; each answer has the ids of the other."""

LINKS = (
    case("I-P4", _CARRIED + "t 100\n@ra\nx close L9\n", (_OPEN_B, ""), (_HERE, ""), (_THERE, "")),
    case("I-P5", _HOME_A + _REQUESTED + _HOME_B + _INVITED, (_REQUESTED, "")),
    case(
        "I-P6",
        _OPEN_A + "PQ close L1 kind=p2p b=RB\n" + _OPEN_A.replace("L1", "L2"),
        ("PQ close L1 kind=p2p b=RB\n", ""),
    ),
    case("I-P7", _REQUESTED + _FAILED + _AGAIN, (_FAILED, "")),
    case("I-P8", _INVITED + _REFUSED + _ANOTHER, (_REFUSED, "")),
    case(
        "I-P11",
        "sm write C1 by=PQ version=1\nsm write C2 by=PC version=2\n",
        ("write C2", "write C1"),
    ),
    case(
        "I-P12",
        "sm write C1 by=PQ version=1\nsm write C1 by=PQ version=2\n",
        ("sm write C1 by=PQ version=2", "sm write C2 by=PQ version=1"),
    ),
    case("I-P13", _MADE + _UP + _THERE.replace("HA>HB", "PQ>PH"), (_UP, "")),
    case("I-P14", _MADE + _UP + _THERE, (_UP, "")),
    case("I-P15", _CARRIED, ("xmit read 2", "xmit read 3")),
    case(
        "I-P15",
        _CARRIED,
        (_LAST_HERE, _LAST_HERE * 2),
        forbids="a message from a direct link, more often than it was sent",
    ),
    case(
        "I-P15",
        _CARRIED,
        ("rcv read 2 HA>HB stub=PC link=L1 seq=2", "rcv read 2 HA>HB stub=PC link=L1 seq=3"),
    ),
    case("I-P16", _CARRIED, ("via=PQ|PC\n", "via=PQ|PC digest=other\n")),
    case("I-P16", _ANSWERS, ("link=L3 digest=a", "link=L3 digest=b")),
    case(
        "I-P16",
        _ANSWERS,
        ("link=L2 digest=b\nx xmit 404 1 HB>HA link=L3 digest=b", "link=L2 digest=c"),
    ),
    case(
        "I-P17",
        _HANDLED + _BUS_LISTENS + _PH_LISTENS,
        (_BUS_LISTENS + _PH_LISTENS, _PH_LISTENS + _BUS_LISTENS),
    ),
    case(
        "I-P17",
        _HANDLED + _BUS_LISTENS + _PH_LISTENS,
        ("PH step p2p_connection RB|RA|handler|PC in-progress established live\n", ""),
    ),
    case("I-P18", _HANDLED + _BUS_LISTENS + _PH_LISTENS + _ROUTED, (_PH_LISTENS, "")),
    case(
        "I-P19",
        _HANDLED + "bus submit update 1 PH>PH/status by=PH\n" + _BUS_LISTENS + _PH_LISTENS + _GONE,
        ("bus del listeners PC minibus:PH\n", ""),
    ),
    case(
        "I-P20", _YIELDED, ("PH step p2p_connection RB|RA|handler|PC created refused failed\n", "")
    ),
    case("I-P20", _REQUESTED + _ASKED_BACK + _TURNED_DOWN + _UP, (_TURNED_DOWN + _UP, _LET_UP)),
    case(
        "I-P21",
        _OPEN_B + _HERE + "PH close L1 kind=p2p b=RA\n",
        (
            "PH rcv read 2 HA>HB stub=PC link=L1 seq=2 via=PQ|PC\nPH close L1 kind=p2p b=RA\n",
            "PH close L1 kind=p2p b=RA\nPH rcv read 2 HA>HB stub=PC link=L1 seq=2 via=PQ|PC\n",
        ),
    ),
    case(
        "I-P22",
        ASKED,
        (ASKED, ASKED + "bus deliver read 1 HA>HB listener=minibus:HB\n"),
        before=RUNTIME,
        forbids="a request to its receiver",
    ),
    case(  # one stub has many links
        "I-P22",
        _TO_ALL,
        ("add listeners O1/changes minibus:PH", "add listeners O1/changes minibus:HB"),
        ("listener=minibus:PH", "listener=minibus:HB"),
        ("listener=minibus:PH", "listener=minibus:HB"),
        before=RUNTIME,
        allows="a request to a stub, for each of its links",
    ),
)

_FOLLOWED = """
bus add listeners RA/ua loader
bus add listeners RA/registry registry
bus add listeners RB/registry/changes registry
bus add listeners PQ minibus:PQ
bus take subscribe 1 RA/registry>RB/registry
bus deliver subscribe 1 RA/registry>RB/registry listener=minibus:PQ
bus take 200 1 RB/registry>RA/registry
bus callback 200 1 RB/registry>RA/registry
"""
_REPORTED_OF = """
bus take update 7 RB/registry>RB/registry/changes
bus deliver update 7 RB/registry>RB/registry/changes listener=registry
"""
_LAST_GONE = """
registry add p2p RB live PQ
registry del p2p RB
bus del listeners RB/registry/changes registry
t 100
"""

CHANGES = (
    case("I-C1", _FOLLOWED + _REPORTED_OF, ("callback 200 1", "callback 404 1")),
    case("I-C5", _FOLLOWED + _LAST_GONE, ("bus del listeners RB/registry/changes registry\n", "")),
)
