"""Stories of transactions, buses and circles."""

from tests.fsm.judge.claims.cases import ANSWERED, ASKED, RUNTIME, case

_AGAIN = ASKED.replace("read 1", "read 2")
_OPENED = "bus step transaction HA|HB|1 [*] opened pending\n"
_AGAIN_TRIED = "bus step transaction HA|HB|1 pending repeated pending\n"
_REPEATED = "t 14\n" + _AGAIN_TRIED
_PROVISIONAL = "bus take 183 1 HB>HA\nbus callback 183 1 HB>HA\n"
_TIMED_OUT = "t 15\nbus synth 408 1 HB>HA\nbus callback 408 1 HB>HA\n"
_LATE = "bus take 200 1 HB>HA\nbus drop 200 1 HB>HA reason=late-response\n"
_SEVERAL = """
bus take 200@RA 1 HB>HA
bus callback 200@RA 1 HB>HA
bus take 200@RB 1 HB>HA
bus callback 200@RB 1 HB>HA
"""
_RETRY = "bus submit read 1 HA>HB by=HA\nbus drop read 1 HA>HB reason=duplicate\n"
_DROPPED = "bus drop update 1 HA>HC/changes reason=no-target\n"
_UNHEARD = "bus take update 1 HA>HC/changes\n" + _DROPPED
_UNROUTED = """
bus take update 1 HA>HC/changes
registry start HC/changes
registry done HC/changes
bus drop update 1 HA>HC/changes reason=no-target
t 10
"""

_TO_ALL = """
bus take delete 1 O1/subscription>O1/changes
bus step transaction O1/subscription|O1/changes|1 [*] opened pending
"""
_ONE_ANSWERED = """
bus take 200@RB 1 O1/changes>O1/subscription
bus deliver 200@RB 1 O1/changes>O1/subscription listener=RA/sm
"""
_OTHER_SILENT = """
t 15
bus synth 408 1 O1/changes>O1/subscription
bus deliver 408 1 O1/changes>O1/subscription listener=RA/sm
"""

TRANSACTIONS = (
    case(
        "I-T1", ASKED + ANSWERED, ("callback 200 1 HB>HA", "callback 200 1 HC>HA"), before=RUNTIME
    ),
    case(
        "I-T2",
        ASKED + ANSWERED,
        (ANSWERED, ANSWERED + ANSWERED),
        before=RUNTIME,
        forbids="a final answer",
    ),
    case(
        "I-T2",
        ASKED + _SEVERAL,
        ("callback 200@RB", "callback 200@RA"),
        before=RUNTIME,
        forbids="a final answer of one of several receivers",
        allows="final answers to a request with several receivers",
    ),
    case("I-T3", ASKED + ANSWERED + "t 100\n", (ANSWERED, ""), before=RUNTIME),
    # each attempt is waited for anew, for no longer, and not a submission without an attempt
    case("I-T3", ASKED + _OPENED + _REPEATED + "t 28\n", ("t 28", "t 100"), before=RUNTIME),
    case(
        "I-T3",
        ASKED + _OPENED + _REPEATED + "t 28\n",
        (_REPEATED, "bus submit read 1 HA>HB by=HA\n"),
        before=RUNTIME,
    ),
    case(
        "I-T3",
        ASKED + _OPENED + "t 14\n" + 8 * _AGAIN_TRIED + "t 28\n" + _AGAIN_TRIED + "t 42\n",
        ("t 28\n", _AGAIN_TRIED + "t 28\n"),
        before=RUNTIME,
    ),
    case(
        "I-T4", ASKED + _PROVISIONAL + ANSWERED, (ANSWERED, ANSWERED + _PROVISIONAL), before=RUNTIME
    ),
    case(
        "I-T5",
        ASKED + _OPENED + _TIMED_OUT + _LATE,
        ("drop 200 1 HB>HA reason=late-response", "deliver 200 1 HB>HA listener=minibus:HA"),
        before=RUNTIME.replace("callback", "deliver"),
    ),
    case("I-T6", ASKED + _OPENED + _TIMED_OUT, ("t 15", "t 14"), before=RUNTIME),
    case(
        "I-T6",
        ASKED + _OPENED + "t 10\n" + _PROVISIONAL + _TIMED_OUT.replace("15", "25"),
        ("t 25", "t 24"),
        before=RUNTIME,
    ),
    case(  # what one of several has answered is no word of the others
        "I-T6",
        _TO_ALL + "t 5\n" + _ONE_ANSWERED + _OTHER_SILENT,
        ("t 15", "t 14"),
        before=RUNTIME + "bus add listeners O1/subscription RA/sm\n",
    ),
    case("I-T7", ASKED + _AGAIN, (ASKED + _AGAIN, _AGAIN + ASKED), before=RUNTIME),
    case(
        "I-T8",
        ASKED + _RETRY,
        ("by=HA\n", "by=HA digest=other\n"),
        before=RUNTIME,
        allows="a request that its sender repeats, which the bus drops as duplicate",
    ),
    case("I-T9", _UNHEARD + "t 100\n", (_DROPPED, ""), before=RUNTIME),
    case(
        "I-T9",
        "stub:SA queue read 1 HA>HC\nstub:SA flush read 1 HA>HC\n",
        ("stub:SA flush", "stub:SA flush read 1 HA>HC\nstub:SA flush"),
        forbids="a message out of a queue that it entered once",
    ),
    case(
        "I-T9",
        "stub:SA queue read 1 HA>HC\nstub:SA drop read 1 HA>HC reason=overflow\nt 100\n",
        ("stub:SA drop read 1 HA>HC reason=overflow\n", ""),
    ),
    case(  # what is answered while it waits may be released, what is dropped may not
        "I-T9",
        "stub:SA queue read 1 HA>HC\nbus synth 408 1 HC>HA\nstub:SA flush read 1 HA>HC\n",
        ("bus synth 408 1 HC>HA", "stub:SA drop read 1 HA>HC reason=overflow"),
    ),
    case(  # what came twice waits twice
        "I-T9",
        2 * "stub:SA queue read 1 HA>HC\n" + 2 * "stub:SA flush read 1 HA>HC\n",
        ("stub:SA queue read 1 HA>HC\n", ""),
        allows="a message out of a queue that it entered twice",
    ),
    case(
        "I-T10",
        ASKED,
        ("listener=HB", "listener=HB\nx xmit read 1 HA>HB type=READ"),
        before=RUNTIME,
    ),
    case("I-T10", "x xmit read 1 HA>HB\n", ("HA>HB", "HA>HB/")),
    case("I-T10", "x xmit read 1 HA>HB\n", ("HA>HB", "HA>HB code=200")),
)

_TO_A_LISTENER = "bus deliver 200 1 HB>HA listener=minibus:HA\n"
_TWO = "bus add listeners HB minibus:HC\n"
_BOTH = """
bus take read 1 HA>HB
bus deliver read 1 HA>HB listener=minibus:HB
bus deliver read 1 HA>HB listener=minibus:HC
minibus:HB deliver read 1 HA>HB listener=HB
"""
_FIRST, _SECOND = (f"bus deliver read 1 HA>HB listener=minibus:{one}\n" for one in ("HB", "HC"))
_TWICE = ("HB", "HC", "HB")
_THREE = [f"bus deliver update 1 HA>HC/changes listener=minibus:{one}\n" for one in _TWICE]
_TAKEN_IN = "minibus:HB deliver update 1 HA>HC/changes listener=HB\n"
_ONE_OF_TWO = "bus del listeners HC/changes minibus:HB\n"
_THE_OTHER = _ONE_OF_TWO + "bus add listeners HC/changes minibus:HB\n"
_OUTWARD = """
bus add listeners SA minibus:SA
bus take read 1 HA>HC
registry start HC
registry done HC SA
bus deliver read 1 HA>HC listener=minibus:SA
"""
_OWN_PART = """registry start HC
bus take read 2 HA>RA/sm
registry start RA/sm
bus drop read 2 HA>RA/sm
"""
_FORGED = """bus submit read 1 HA>HB by=HA
bus permit read 1 HA>HB
bus admit read 1 HA>HB by=HC
bus take"""
_REPEATED = """
bus take read 1 HA>HC
bus deliver read 1 HA>HC listener=minibus:HB
minibus:HB deliver read 1 HA>HC listener=HB
bus del components HC HB writer=local
bus take 200 1 HC>HA by=HC
bus callback 200 1 HC>HA
"""
_BY_THE_REMOVED = "bus take read 2 HC>HA by=HC\nbus deliver read 2 HC>HA listener=minibus:HA\n"
_DENIED = """
bus submit read 1 HA>HB by=HA
bus deny read 1 HA>HB by=HA code=403
bus synth 403 1 HB>HA
bus callback 403 1 HB>HA
"""


def _sent(number: int, from_: str) -> str:
    """A peer sends to HB over the link PQ."""
    message = f"update {number} {from_}>HB"
    return f"""bus take {message} by=PQ via=PQ
bus deliver {message} listener=minibus:HB
minibus:HB deliver {message} listener=HB
"""


_BY_LINK = f"""
bus add components HC PQ writer=p2p-stub
{_sent(1, "HC")}{_sent(2, "RB/registry")}bus take update 3 PQ>PQ/status by=PQ
bus drop update 3 PQ>PQ/status reason=no-target
"""

_FROM_RA = """
@ra
bus add listeners RA/ua loader
bus add listeners SA minibus:SA
bus add listeners PQ minibus:PQ
bus take read 1 HA>HB
bus deliver read 1 HA>HB listener=minibus:SA
bus take read 2 HA>HB
bus deliver read 2 HA>HB listener=minibus:PQ
@rb
bus add listeners RB/ua loader
bus add listeners HB minibus:HB
stub:SB rcv read 1 HA>HB
PH rcv read 2 HA>HB
"""
_NODE_FIRST, _LINK_NEXT = (
    f"bus take read {n} HA>HB\nbus deliver read {n} HA>HB listener=minibus:HB\n" for n in (1, 2)
)
_AGAIN = "bus take read 1 HA>HB\nbus deliver read 1 HA>HB listener=minibus:SA\n"
_KEPT = _FROM_RA.replace(" HA>HB", " HA>HB kind=durable")
_KEPT_FIRST, _KEPT_NEXT = (
    one.replace(" HA>HB", " HA>HB kind=durable") for one in (_NODE_FIRST, _LINK_NEXT)
)
_UNSURE = "bus take 503 1 HB>HA\nbus callback 503 1 HB>HA\n"
_BOTH_LISTEN = "".join(f"bus add listeners HC/changes minibus:{one}\n" for one in _TWICE)


def in_runtime(claim, record, *changes, more="", forbids=""):
    """A case of what a runtime's bus does."""
    return case(claim, record, *changes, before=RUNTIME + more, forbids=forbids)


BUSES = (
    in_runtime("I-B1", ASKED, ("bus take", "bus del listeners HB minibus:HB\nbus take")),
    in_runtime("I-B1", ASKED, ("listener=HB", "listener=HC")),
    in_runtime("I-B2", _BOTH, (_SECOND, ""), more=_TWO),
    in_runtime("I-B3", _BOTH, (_FIRST + _SECOND, _SECOND + _FIRST), more=_TWO),
    in_runtime(
        "I-B3",
        "bus take update 1 HA>HC/changes\n" + "".join(_THREE) + 2 * _TAKEN_IN,
        ("".join(_THREE[:2]), "".join(_THREE[1::-1])),
        more=_BOTH_LISTEN,
    ),
    in_runtime(
        "I-B3",
        _ONE_OF_TWO + "bus take update 1 HA>HC/changes\n" + "".join(_THREE[:2]) + _TAKEN_IN,
        (_ONE_OF_TWO, _ONE_OF_TWO + _THE_OTHER),
        more=_BOTH_LISTEN,
    ),
    in_runtime(
        "I-B4",
        ASKED + ANSWERED,
        (ANSWERED, ANSWERED + _TO_A_LISTENER),
        forbids="an answer to a listener that its requester got",
    ),
    in_runtime("I-B5", _OUTWARD, ("add listeners SA minibus:SA", "add listeners * minibus:SA")),
    in_runtime("I-B6", _OUTWARD, ("registry start HC", _OWN_PART)),
    in_runtime("I-B6", ASKED, ("bus deliver", "registry start HB\nbus deliver")),
    in_runtime(
        "I-B7",
        "bus take read 1 HA>HB\nbus take read 2 HA>HB\n"
        "bus deliver read 1 HA>HB listener=minibus:HB\n"
        "bus deliver read 2 HA>HB listener=minibus:HB\n"
        "minibus:HB deliver read 2 HA>HB listener=HB\n"
        "minibus:HB deliver read 1 HA>HB listener=HB\n",
        ("deliver read 1", "deliver read 3"),
        ("deliver read 2", "deliver read 1"),
        ("deliver read 3", "deliver read 2"),
    ),
    in_runtime(  # a durable message may come later than others
        "I-B7",
        "bus take read 1 HA>HB kind=durable\nbus take read 2 HA>HB\n"
        "bus deliver read 2 HA>HB listener=minibus:HB\n"
        "bus deliver read 1 HA>HB kind=durable listener=minibus:HB\n"
        "minibus:HB deliver read 2 HA>HB listener=HB\n"
        "minibus:HB deliver read 1 HA>HB kind=durable listener=HB\n",
        ("kind=durable listener", "listener"),
    ),
    case(  # across runtimes, whatever paths: what went by the node comes before the link's
        "I-B7",
        _FROM_RA + _NODE_FIRST + _LINK_NEXT,
        (_NODE_FIRST + _LINK_NEXT, _LINK_NEXT + _NODE_FIRST),
    ),
    case(
        "I-B7",
        _KEPT + _KEPT_FIRST + _KEPT_NEXT,
        (_KEPT_FIRST + _KEPT_NEXT, _KEPT_NEXT + _KEPT_FIRST),
    ),
    case(  # a repeat of what was lost comes as late as it was sent again
        "I-B7",
        _FROM_RA.replace("@rb", _AGAIN + "@rb") + _LINK_NEXT + _NODE_FIRST,
        (_AGAIN + "@rb", "@rb"),
    ),
    in_runtime("I-B8", ASKED, ("bus take", "bus admit")),
    in_runtime(
        "I-B8",
        _OUTWARD,
        (
            "bus take read 1 HA>HC\nregistry start HC\n",
            "registry start HC\nbus take read 1 HA>HC\n",
        ),
    ),
    in_runtime(
        "I-B9", _DENIED, ("bus synth", "x xmit read 1 HA>HB\nbus xmit read 1 HA>HB\nbus synth")
    ),
    in_runtime("I-B9", _DENIED, ("bus synth 403 1 HB>HA\nbus callback 403 1 HB>HA\n", "")),
    in_runtime(
        "I-B10",
        ASKED,
        ("bus take", _FORGED),
        more="bus add components HA HA writer=local\nbus add components HC HC writer=local\n",
    ),
    *(
        in_runtime(  # the bus repeats the answer of an address that has been removed
            "I-B10",
            _REPEATED,
            change,
            more="bus add components HA HA writer=local\nbus add components HC HB writer=local\n",
        )
        for change in (
            ("bus callback", _BY_THE_REMOVED + "bus callback"),
            ("HC>HA by=HC", "PQ>HA by=PQ"),
        )
    ),
    *(
        in_runtime(
            "I-B10",
            _BY_LINK,
            change,
            more="bus add components PQ PQ writer=p2p-stub\n"
            "bus add components RB PQ writer=p2p-stub\n",
        )
        for change in (
            ("bus add components HC PQ writer=p2p-stub\n", ""),
            (
                "\nbus take update 1",
                "\nbus del components HC PQ writer=p2p-stub\nbus take update 1",
            ),
            (_sent(2, "RB/registry"), _sent(2, "RC/registry")),
            (_sent(2, "RB/registry"), _sent(2, "PQ")),
            (_sent(2, "RB/registry"), _sent(2, "MN/sm")),
        )
    ),
    in_runtime("I-B11", ASKED, (ASKED, ASKED + "minibus:HA deliver read 1 HA>HB listener=HA\n")),
    in_runtime("I-B12", _UNROUTED, ("bus drop update 1 HA>HC/changes reason=no-target\n", "")),
)

_CROSSED = "x rcv read 1 HA>HB via=SB\nx xmit read 1 HA>HB stub=SA link=L1 via=SB|SA\n"
_SENT_ON = _CROSSED + _CROSSED.partition("\n")[2] * 7

LOOPS = (
    case("I-L1", "x permit read 1 HA>HB\nx admit read 1 HA>HB via=SA|SB\n", ("SA|SB", "SA|SA")),
    case(
        "I-L2",
        _CROSSED,
        ("via=SB\n", "via=SB|SA|PQ\n"),
        ("via=SB|SA\n", "via=SB|SA|PQ|SA\n"),
        forbids="a message by a stub that has carried it",
    ),
    case("I-L3", _CROSSED, ("via=SB|SA", "via=SA")),
    case("I-L3", _CROSSED, ("via=SB|SA", "via=SB")),
    case(
        "I-L4",
        "x permit read 1 HA>HB\nx admit read 1 HA>HB via=1|2|3|4|5|6|7|8\n",
        ("7|8", "7|8|9"),
    ),
    case("I-L4", _SENT_ON * 16, ("x rcv read 1 HA>HB via=SB\n", "")),
    case(
        "I-L5",
        _CROSSED,
        ("rcv read 1 HA>HB", "rcv read 1 HA>HB link=L1"),
        forbids="a message to the peer that it came from",
    ),
)

EXCUSED = (
    case(
        "I-B7",
        _KEPT + _KEPT_FIRST + _KEPT_NEXT,
        (_KEPT_FIRST + _KEPT_NEXT, _KEPT_NEXT + _KEPT_FIRST),
        ("@rb", _UNSURE + "@rb"),
    ),
)
"""What looks as if it broke a claim, and has a reason."""
