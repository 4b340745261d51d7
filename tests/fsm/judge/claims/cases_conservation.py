"""Stories of what becomes of each message: given once, lost nowhere, between processes too."""

from tests.fsm.judge.claims.cases import ANSWERED, ASKED, RUNTIME, case

_STUB = """
bus add components SA SA writer=node-stub
bus add components HA HA writer=local
registry add stubs a.ex SA live
minibus:SA add listeners * SA
"""
_HEARS = "bus add listeners HC/changes minibus:HB\n"
_TAKEN = "bus take update 1 HC>HC/changes by=SA\n"
_GIVEN = """
bus deliver update 1 HC>HC/changes listener=minibus:HB
minibus:HB deliver update 1 HC>HC/changes listener=HB
"""
_HANDED = "minibus:HB deliver update 1 HC>HC/changes listener=HB\n"
_READ = "x rcv update 1 HC>HC/changes stub=SA link=K via=SA\n"
_SECOND = (
    _READ
    + """
bus submit update 1 HC>HC/changes by=SA
bus drop update 1 HC>HC/changes reason=duplicate
"""
)
_CAME = _READ + _TAKEN + _GIVEN
_NEXT = _CAME.replace("update 1", "update 2")
_EVENTS = RUNTIME + _STUB + _HEARS
_OTHER = "bus add listeners HC/changes loader\n"
_ALSO = "bus deliver update 1 HC>HC/changes listener=loader\n"
_BOTH = _READ + _TAKEN + _GIVEN + _ALSO
_BOTH_NEXT = _BOTH.replace("update 1", "update 2")
_NEXT_GIVEN = _GIVEN.replace("update 1", "update 2")
_GONE = "bus del listeners HC/changes minibus:HB\n"
_PROVISIONAL = "bus take 183 1 HB>HA\nbus callback 183 1 HB>HA\n"

_ANSWER = """
bus take 200 1 HA>MN/sm
bus deliver 200 1 HA>MN/sm listener=minibus:SA
minibus:SA deliver 200 1 HA>MN/sm listener=SA
"""
_WRITTEN = "x xmit 200 1 HA>MN/sm stub=SA link=K via=SA\n"
_REQUEST = """
x rcv read 1 MN/sm>HA stub=SA link=K via=SA
bus take read 1 MN/sm>HA by=SA
bus deliver read 1 MN/sm>HA listener=minibus:HA
minibus:HA deliver read 1 MN/sm>HA listener=HA
"""
_SERVED = _REQUEST + _ANSWER + _WRITTEN
_DENIED = """
bus submit read 9 HA>HB by=HA
bus deny read 9 HA>HB by=HA code=403
bus drop read 9 HA>HB reason=denied
"""
_ADMITTED = "bus take read 9 HA>HB by=HA\n"
_REFUSAL = "bus synth 403 9 HB>HA\n"
_COMES_AGAIN = """
x rcv read 7 HC>HA stub=SA link=K via=SA
bus submit read 7 HC>HA by=SA
bus deny read 7 HC>HA by=SA code=409
bus drop read 7 HC>HA reason=duplicate
bus synth 409 7 HA>HC
"""
_ITS_REFUSAL = """
bus deliver 409 7 HA>HC listener=minibus:SA
minibus:SA deliver 409 7 HA>HC listener=SA
x xmit 409 7 HA>HC stub=SA link=K via=SA
"""
_REFUSED = _COMES_AGAIN + _ITS_REFUSAL
_SERVED_AGAIN = _SERVED.replace(" 1 ", " 2 ")
_ROUTED = _EVENTS + "bus add listeners MN/sm minibus:SA\n"

_NODE = """
bus add components MN/sm sm
bus open L1 kind=mn a=MN
bus session link=L1 a=MN b=RA
bus open L2 kind=mn a=MN
bus session link=L2 a=MN b=RB
bus add alloc HC RB
bus step node_subscription HC/changes|RA [*] subscribe active
"""
_IN = """
bus rcv update 1 HC>HC/changes link=L2
bus permit update 1 HC>HC/changes
bus admit update 1 HC>HC/changes by=RB
bus publish update 1 HC>HC/changes targets=1
"""
_OUT = "bus xmit update 1 HC>HC/changes link=L1\n"
_PUBLISHED = _IN + _OUT
_PUBLISHED_NEXT = _PUBLISHED.replace("update 1", "update 2")
_LEFT = """
bus step node_subscription HC/changes|RA active unsubscribe removed
bus del alloc HC RB
"""
_QUEUED = "bus queue update 1 HC>HC/changes listener=RA\n"
_FLUSHED = "bus flush update 1 HC>HC/changes\n"

_FROM_NODE = """
@mn
bus add components MN/sm sm
bus open L1 kind=mn a=MN
bus session link=L1 a=MN b=RA
bus xmit update 1 HC>HC/changes link=L1
bus xmit update 2 HC>HC/changes link=L1
@ra
"""
_SESSION = _FROM_NODE + _EVENTS

_LISTENS = "minibus:HB add listeners HC/changes HB\n"
_LINKED = """
bus add components PQ PQ writer=p2p-stub
bus add components HB HB writer=local
registry add p2p RB live PQ HC
bus add listeners HB/changes minibus:PQ
minibus:PQ add listeners HB/changes PQ
"""
_BY_LINK = """
bus deliver update 1 HB>HB/changes listener=minibus:PQ
minibus:PQ deliver update 1 HB>HB/changes listener=PQ
"""
_SENT = "PQ xmit update 1 HB>HB/changes stub=PQ link=K via=PQ\n"
_BY_LINK_ONLY = "bus take update 1 HB>HB/changes\n" + _BY_LINK + _SENT
_GIVEN_BACK = "bus queue update 1 HB>HB/changes\nbus flush update 1 HB>HB/changes\n"
_BY_LINK_AT_LAST = "bus take update 1 HB>HB/changes\n" + _BY_LINK + _GIVEN_BACK + _BY_LINK + _SENT
_LOST_AT_LAST = _BY_LINK_AT_LAST.removesuffix(_SENT)
_NEXT_BY_LINK = _BY_LINK_ONLY.replace("update 1", "update 2")
_BY_OTHER_LINK = """
bus deliver update 1 HB>HB/changes listener=minibus:PH
minibus:PH deliver update 1 HB>HB/changes listener=PH
"""
_SENT_BY_OTHER = "PH xmit update 1 HB>HB/changes stub=PH link=J via=PH\n"
_OTHER_LINK = "bus add components PH PH writer=p2p-stub\nbus add listeners HB/changes minibus:PH\n"
_BY_BOTH = "bus take update 1 HB>HB/changes\n" + _BY_LINK + _BY_OTHER_LINK
_TWO_LINKS = _BY_BOTH + _GIVEN_BACK + _BY_OTHER_LINK + _SENT + _SENT_BY_OTHER
_NEXT_BY_BOTH = (_BY_BOTH + _SENT_BY_OTHER + _SENT).replace("update 1", "update 2")
_LOCAL = "bus deliver update 1 HB>HB/changes listener=loader\n"
_HERE_TOO = "bus add listeners HB/changes loader\n"
_FIRST = """
bus take read 5 HA>HC
bus deliver read 5 HA>HC listener=minibus:SA
minibus:SA deliver read 5 HA>HC listener=SA
"""
_GOES = "x xmit read 5 HA>HC stub=SA link=K via=SA\n"
_WAITS = "stub:SA queue read 5 HA>HC\n"
_GOES_THEN = "stub:SA flush read 5 HA>HC\n" + _GOES
_GIVEN_A_STUB = _EVENTS + "bus add listeners SA minibus:SA\n"
_GOES_TWICE = _FIRST + _GOES + _FIRST + _WAITS + _GOES_THEN
_NODE_TOO = "bus add listeners HB/changes minibus:SA\n"
_BY_NODE = """
bus deliver update 1 HB>HB/changes listener=minibus:SA
minibus:SA deliver update 1 HB>HB/changes listener=SA
x xmit update 1 HB>HB/changes stub=SA link=N via=SA
"""
_BOTH_WAYS = _BY_LINK_ONLY + _BY_NODE
_OPENS = "PQ open K kind=p2p\n"
_BREAKS = "PQ close K\n"

CONSERVATION = (
    # once
    case("I-T11", _CAME, (_HANDED, _HANDED + _HANDED), before=_EVENTS,
         forbids="an event from a sandbox to its hyperty"),
    case("I-T11", _CAME, (_GIVEN, _GIVEN + _GIVEN), before=_EVENTS,
         forbids="an event from the bus to a listener"),
    case("I-T11", _CAME, (_TAKEN + _GIVEN, _TAKEN + _GIVEN + _TAKEN + _GIVEN), before=_EVENTS),
    case("I-T11", _CAME, (_CAME, _CAME + _CAME), before=_EVENTS,
         forbids="an event that came twice, to a listener that has it"),
    case(
        "I-T11", ASKED + _PROVISIONAL + ANSWERED,
        ("bus callback 183 1 HB>HA\n", "bus callback 183 1 HB>HA\n" * 2), before=RUNTIME,
        forbids="a provisional answer",
    ),
    case("I-T11", _SERVED, (_WRITTEN, _WRITTEN + _WRITTEN), before=_ROUTED,
         forbids="an answer that a stub got once"),
    # a request that comes three times is refused three times
    case("I-T11", _REFUSED * 3, (_ITS_REFUSAL, _ITS_REFUSAL * 2),
         before=_EVENTS + "bus add listeners HC minibus:SA\n",
         forbids="a refusal that was made once",
         allows="a refusal, for each time that its request comes"),
    case("I-T11", "@mn" + _NODE + _PUBLISHED + _LEFT, (_OUT, _OUT + _OUT),
         forbids="a publication of a node, to one runtime"),
    # lost at its receiver, in a sandbox, in a stub, in a node
    case("I-T12", _NEXT + _CAME, (_TAKEN + _GIVEN, ""), before=_EVENTS),
    case("I-T12", _NEXT + _CAME, (_HANDED, ""), before=_EVENTS),
    case("I-T12", _SERVED_AGAIN + _SERVED, (_WRITTEN, ""), before=_ROUTED),
    case("I-T12", "@mn" + _NODE + _PUBLISHED_NEXT + _PUBLISHED + _LEFT, (_OUT, "")),
    case(
        "I-T12", "@mn" + _NODE + _PUBLISHED_NEXT + _IN + _QUEUED + _FLUSHED + _OUT + _LEFT,
        (_FLUSHED + _OUT, _FLUSHED),
    ),
    case("I-T12", "@mn" + _NODE + _PUBLISHED_NEXT + _PUBLISHED + _LEFT,
         ("bus admit update 1 HC>HC/changes by=RB\n"
          "bus publish update 1 HC>HC/changes targets=1\n" + _OUT, "")),
    # the first message of a sandbox, and of a stub that has read something, is missed, too
    case("I-T12", _CAME, (_HANDED, ""), before=_EVENTS + _LISTENS),
    case("I-T12", _SERVED, (_WRITTEN, ""), before=_ROUTED),
    # a refused submission has its answer as its result; that to an admitted request is given
    case("I-T12", _SERVED + _DENIED + _REFUSAL, (_DENIED, _ADMITTED), before=_ROUTED),
    # a drop excuses one copy in one place
    case("I-T12", _CAME + _SECOND, (_HANDED, ""), before=_EVENTS + _LISTENS,
         allows="an event that came twice, which the bus drops as duplicate"),
    # one link gets an event once; who listens here gets it once, links or not
    case("I-T11", _BY_LINK_ONLY, (_BY_LINK + _SENT, (_BY_LINK + _SENT) * 2),
         before=RUNTIME + _LINKED, forbids="an event by one direct link"),
    case("I-T11", "bus take update 1 HB>HB/changes\n" + _BY_LINK + _LOCAL + _SENT,
         (_LOCAL, _LOCAL + _LOCAL), before=RUNTIME + _LINKED + _HERE_TOO,
         forbids="an event to a listener of the runtime, if links get it, too"),
    # what is sent again waits, and is sent again
    case("I-T12", _GOES_TWICE, (_GOES_THEN, "stub:SA flush read 5 HA>HC\n"),
         before=_GIVEN_A_STUB, allows="a request that its sender repeats, by the node's stub"),
    case("I-T12", _GOES_TWICE, (_WAITS + _GOES_THEN, ""), before=_GIVEN_A_STUB),
    # what a direct link gave back unsent waits again at the bus
    case("I-T12", _BY_LINK_AT_LAST, (_GIVEN_BACK, ""), before=RUNTIME + _STUB + _LINKED),
    case("I-T12", _TWO_LINKS + _NEXT_BY_BOTH, (_SENT, ""),
         before=RUNTIME + _STUB + _LINKED + _OTHER_LINK,
         allows="an event by each of several direct links"),
    case("I-T12", _BY_LINK_AT_LAST + _NEXT_BY_LINK, (_BY_LINK_AT_LAST, _LOST_AT_LAST),
         before=RUNTIME + _STUB + _LINKED),
    # what a link that has ended sent goes by the node, too; of one that has not, nothing comes back
    case("I-T11", _OPENS + _BOTH_WAYS + _BREAKS + _BY_NODE,
         (_BREAKS + _BY_NODE, _BY_NODE + _BREAKS), before=RUNTIME + _STUB + _LINKED + _NODE_TOO,
         forbids="an event by the node, while the direct link that carried it is up",
         allows="an event by the node, after the direct link that carried it has ended"),
    # lost to one of two, of whom both are there
    case("I-B2", _BOTH + _BOTH_NEXT + _GONE, (_GIVEN, ""), before=_EVENTS + _OTHER),
    # between processes
    case("I-L6", _CAME + _NEXT, (_CAME, ""), before=_SESSION),
    case("I-L6", _CAME + _NEXT, (_READ, _READ + _SECOND), before=_SESSION,
         forbids="a message by a session, more often than it was sent"),
)  # fmt: skip

EXCUSED = (
    case(  # counted with its reason
        "I-T12", _NEXT + _CAME,
        (_TAKEN + _GIVEN, "x drop update 1 HC>HC/changes reason=overtaken\n"), before=_EVENTS,
    ),
    case(  # it left before the message got to it
        "I-B2", _BOTH + _BOTH_NEXT, (_GIVEN, _GONE), (_NEXT_GIVEN, ""), before=_EVENTS + _OTHER
    ),
    case(  # the process did not end: what has not come yet may come
        "I-T12", _NEXT + _CAME, (_HANDED, "cut\n"), before=_EVENTS
    ),
    case(  # a link that ends loses what was sent last
        "I-L6", _CAME + _NEXT, (_NEXT, ""), before=_SESSION
    ),
    case(  # what was not written waits again
        "I-T11", "@mn" + _NODE + _PUBLISHED + _LEFT,
        (_OUT, _OUT + _QUEUED + "bus close L1\nbus open L3 kind=mn a=MN\n"
         "bus session link=L3 a=MN b=RA\n" + _FLUSHED + _OUT.replace("L1", "L3")),
        allows="a publication that the last link of the runtime did not carry",
    ),
)  # fmt: skip
"""What looks as if it broke a claim, and has a reason."""
