"""Stories of data objects: what copies hold, who observes by whose leave, and the end."""

from tests.fsm.judge.claims.cases import case

_LISTENING = "bus add listeners O1/changes RA/sm\n"
_ASKED = "bus take subscribe 1 RA/sm>O1/subscription\n"
_APPLIED = "@rb\nHB apply O1 by=HB version=1 digest=aa\nHB apply O1 by=HB version=2 digest=bb\n"
_AGAIN = "@rc\nsm write O1 by=HA version=2 digest=bb\n"
_WRITTEN = "sm write O1 by=HA version=1 digest=aa\nsm write O1 by=HA version=2 digest=bb\n"

_HOME = "bus add listeners RA/sm loader\n"
_CREATED = _HOME + "sm write O1 by=HA version=1\n"
_REQUESTED = "sm step object_subscription O1|HB [*] request requested\n"
_ADDED = "sm add observers O1 HB writer=sm\n"
_ACCEPTED = "sm step object_subscription O1|HB requested accept active {}\n"
_GUEST = "sm add guests O1 HB writer=HA\n"
_PUBLIC = "sm add guests O1 public writer=HA\n"
_QUESTION = (
    "bus take forward 1 O1>HA\n"
    "bus add listeners HA minibus:HA\n"
    "bus deliver forward 1 O1>HA listener=minibus:HA\n"
)
_YES = "bus take 200 1 HA>O1\nbus callback 200 1 HA>O1\n"
_ENDED = """
sm step object_subscription O1|HB active object-deleted removed
sm del observers O1 HB writer=sm
"""
_ON = _ADDED + _ACCEPTED
_INVITED = _REQUESTED + _ON.format("why=invited") + _ENDED
_ANYBODY = _REQUESTED + _ON.format("why=public") + _ENDED
_DECIDED = _REQUESTED + _QUESTION + _YES + _ON.format("") + _ENDED
_INVITATION = "bus take create 1 O1/subscription>HB\nbus take 200 1 HB>O1/subscription\n"
_CHANGED = "sm write O1 by=HA version=2\nbus take update 2 O1>O1/changes\n"
_DELETED = "sm do del O1\n"
_CHILD = """
sm do add O1|HB#1 by=HB
sm do upd O1|HB#1 by=HB
sm do add O1|HB#2 by=HB
sm do del O1|HB#1 by=HB
"""
_ENDED = "sm do del O1|HB#2 by=O1\n"

_REQUEST = """
bus add listeners RA/sm sync-manager
bus take update 1 HA>RA/sm
bus deliver update 1 HA>RA/sm listener=sync-manager
"""
_ANSWER = "bus take 200 1 RA/sm>HA\nbus callback 200 1 RA/sm>HA\n"
_WRITE = "sm write O1 by=HA version=1 digest=aa\n"
_REMOVAL = _REQUEST.replace("update", "delete")
_VERSIONS = "@ra\n" + _HOME + "".join(f"sm write O1 by=HA version={n}\n" for n in (1, 2, 3))
_READ_ANEW = """
@rb
bus add listeners RB/sm loader
HB apply O1 by=HB version=1
HB step observer_copy O1|HB live changed stale
HB step observer_copy O1|HB stale snapshot live
HB apply O1 by=HB version=3
"""
_TO_MANAGER = "bus deliver update 1 HB>O1/children/resources listener=sync-manager\n"
_BESIDE = "sync-manager", "minibus:HA"
_LISTENED = """
bus add listeners O1/children/resources sync-manager
bus add listeners O1/children/resources minibus:HA
bus add listeners O1/children/resources minibus:PQ
"""
_BROUGHT = _LISTENED + "bus take update 1 HB>O1/children/resources by=PC\n" + _TO_MANAGER
_BY_LINK = "bus take update 1 HB>O1/children/resources by=PC\n"
_BY_NODE = "bus take update 1 HB>O1/children/resources by=SA\n"
_WROTE = (
    _LISTENED
    + "bus take update 1 HB>O1/children/resources by=HB\n"
    + _TO_MANAGER
    + _TO_MANAGER.replace(*_BESIDE)
)

VALUES = (
    case("I-D1", _REQUEST + _WRITE + _ANSWER, ("by=HA", "by=HB")),
    case("I-D1", _REQUEST + _WRITE + _ANSWER, (_WRITE + _ANSWER, _ANSWER + _WRITE)),
    case("I-D1", _REMOVAL + _WRITE + _ANSWER, ("by=HA", "by=HB")),
    case("I-D2", _VERSIONS, ("version=3", "version=4")),
    case("I-D2", _VERSIONS, ("version=3", "version=2")),
    case("I-D2", _VERSIONS + _READ_ANEW, ("apply O1 by=HB version=3", "apply O1 by=HB version=4")),
    case("I-D2", _VERSIONS + _READ_ANEW, ("write O1 by=HA version=2", "write O2 by=HA version=2")),
    case("I-D4", _WRITTEN + _APPLIED, ("version=2 digest=bb\n@rb", "version=2 digest=cc\n@rb")),
    case(
        "I-D4",
        _WRITTEN + _AGAIN,
        (
            "@rc\nsm write O1 by=HA version=2 digest=bb",
            "@rc\nsm write O1 by=HA version=2 digest=cc",
        ),
    ),
    case("I-D6", _LISTENING + _ASKED, ("add listeners O1/changes", "add listeners RA/sm")),
    case("I-D6", _GUEST + _CREATED + _INVITED, (_ADDED, "")),
    case(
        "I-D6",
        _GUEST + _CREATED + _INVITED,
        (_ON.format("why=invited"), _ACCEPTED.format("why=invited") + _ADDED),
    ),
    case(
        "I-D8",
        _CREATED + _CHANGED + _DELETED,
        ("sm write O1 by=HA version=2\n", ""),
        (_DELETED, _DELETED + "sm write O1 by=HA version=2\n"),
    ),
    case(
        "I-D8",
        _CREATED + _CHANGED + _DELETED,
        (
            "bus take update 2 O1>O1/changes\n" + _DELETED,
            _DELETED + "t 20\nbus take update 2 O1>O1/changes\n",
        ),
    ),
    case("I-D8", _GUEST + _CREATED + _INVITED + _DELETED, (_REQUESTED, _DELETED + _REQUESTED)),
    case("I-D9", _CREATED + _GUEST + _INVITED, (_GUEST, "")),
    case("I-D9", _CREATED + _GUEST + _INVITED, ("O1 HB writer=HA", "O1 HC writer=HA")),
    case("I-D9", _CREATED + _GUEST + _INVITED, ("O1 HB writer=HA", "O1 HB writer=HB")),
    case("I-D9", _CREATED + _GUEST + _INVITED, (_GUEST, _GUEST + _GUEST.replace("add", "del"))),
    case("I-D9", _CREATED + _PUBLIC + _ANYBODY, (_PUBLIC, "")),
    case("I-D9", _CREATED + _DECIDED, (_YES, _YES.replace("200", "403"))),
    case(
        "I-D9",
        _CREATED + _DECIDED + _REQUESTED,
        (_DECIDED + _REQUESTED, _DECIDED + _REQUESTED + _ON.format("")),
    ),
    case("I-D10", _CHILD, ("do upd O1|HB#1 by=HB", "do upd O1|HB#1 by=HA")),
    case("I-D10", _CHILD, ("do add O1|HB#2", "do add O1|HB#1")),
    case("I-D10", _CHILD + _ENDED, (_ENDED, _ENDED.replace("by=O1", "by=O2"))),
    case("I-D10", _BROUGHT, (_TO_MANAGER, _TO_MANAGER + _TO_MANAGER.replace(*_BESIDE))),
    case(
        "I-D10",
        _BY_NODE + _BY_LINK + _TO_MANAGER.replace(*_BESIDE),
        (_BY_NODE + _BY_LINK, _BY_LINK + _BY_NODE),
    ),
    case("I-B2", _BROUGHT, (_TO_MANAGER, "")),
    case("I-B2", _WROTE, (_TO_MANAGER, "")),
    case("I-D11", _CREATED + _GUEST + _INVITATION, (_GUEST, "")),
    case("I-D11", _CREATED + _GUEST + _INVITATION, ("writer=HA", "writer=HB")),
)

EXCUSED = (
    case(  # as a page calls its sync manager
        "I-D10",
        _BROUGHT,
        ("resources sync-manager", "resources sm"),
        ("listener=sync-manager", "listener=sm"),
    ),
    case(
        "I-D8",
        _CREATED + _CHANGED + _DELETED,
        (
            "bus take update 2 O1>O1/changes\n" + _DELETED,
            _DELETED + "bus take update 2 O1>O1/changes\n",
        ),
    ),
)
"""What looks as if it broke a claim, and has a reason."""
