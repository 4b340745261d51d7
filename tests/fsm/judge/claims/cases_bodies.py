"""Stories of what the framework's messages say: addresses, registrations, links."""

from tests.fsm.judge.claims.cases import RUNTIME, case

_AA = "RA/address-allocation>MN/address-allocation"
_BACK = "MN/address-allocation>RA/address-allocation"


def _asked(verb: str, number: int, ends: str, body: str) -> str:
    return f"bus deliver {verb} {number} {ends} listener=MN/aa body={body}\n"


def _answered(number: int, ends: str, body: str = '{"code":200}') -> str:
    return f"bus xmit 200 {number} {ends} link=L1 body={body}\n"


def _given(*names: str) -> str:
    return "".join(
        f"bus step address {one} [*] allocate allocated\nbus add alloc {one} RA\n" for one in names
    )


def _freed(*names: str, why: str = "delete") -> str:
    return "".join(
        f"bus step address {one} allocated release released why={why}\nbus del alloc {one} RA\n"
        for one in names
    )


_WANTED = _asked("create", 1, _AA, '{"scheme":"hyperty","value":{"number":2,"allocationKey":"k"}}')
_ALLOCATED = (
    "bodies\nbus add components MN/sm sm\n"
    + _WANTED
    + _given("HA", "HB")
    + _answered(1, _BACK, '{"code":200,"value":{"allocated":["HA","HB"]}}')
)
_BLOCK = _asked("delete", 2, _AA, '{"resource":"k"}') + _freed("HA", "HB") + _answered(2, _BACK)
_LIST = _asked("delete", 2, _AA, '{"childrenResources":["HA","HB"]}')
_LISTED = _LIST + _freed("HA", "HB") + _answered(2, _BACK)
_AT_END = _freed("HA", "HB", why="closed")

ADDRESSES = (
    case("I-A4", _ALLOCATED + _AT_END, ('["HA","HB"]', '["HA"]')),
    case("I-A4", _ALLOCATED + _AT_END, ('["HA","HB"]', '["HA","HA"]')),
    case("I-A4", _ALLOCATED + _AT_END, ('["HA","HB"]', '["HA","O1"]')),
    case(
        "I-A5",
        _ALLOCATED + _BLOCK,
        (
            _freed("HB") + _answered(2, _BACK),
            _answered(2, _BACK) + _AT_END.replace(_freed("HA", why="closed"), ""),
        ),
    ),
    case(
        "I-A6",
        _ALLOCATED + _LISTED,
        (_LIST, _LIST.replace("RA/address", "RB/address")),
        (_answered(2, _BACK), _answered(2, _BACK.replace(">RA", ">RB"))),
    ),
)

_REG = "RA/registry>DR"
_REG_BACK = "DR>RA/registry"
_RECORD = '{"value":{"url":"HA","runtime":"RA","p2pHandler":"RA/p2phandler/1","expires":10.0}}'
_NODE = "bodies\nbus add components MN/sm sm\n" + _given("HA")
_LIVE = "dr step registration HA [*] create-live live\n"
_AWAY = "dr step registration HA live disconnect disconnected\n"
_REGISTERED = _asked("create", 3, _REG, _RECORD) + _LIVE + _answered(3, _REG_BACK)
_READ = _asked("read", 4, "RB/registry>DR", '{"resource":"HA"}')
_FOUND = _answered(4, "DR>RB/registry", '{"code":200,"value":{"url":"HA","runtime":"RA"}}')
_NOTICE = '{"attribute":"status","value":"disconnected"}'
_TELLS = f"bus publish update 9 DR>HA/registration targets=0 body={_NOTICE}\n"
_GONE = _freed("HA", why="closed")
_WHOLE = _NODE + _REGISTERED + _READ + _FOUND + "t 5\n" + _AWAY + _TELLS + _GONE
_REGISTRY_STARTS = "bus add components DR registry writer=bus\n"
_OTHERS = _asked("create", 3, "RB/registry>DR", _RECORD.replace("RA", "RB"))

REGISTRATIONS = (
    case(
        "I-G2",
        _WHOLE,
        (_asked("create", 3, _REG, _RECORD), _OTHERS),
        (_answered(3, _REG_BACK), _answered(3, "DR>RB/registry")),
    ),
    case(
        "I-G3",
        _WHOLE,
        (_answered(3, _REG_BACK) + _READ + _FOUND, _READ + _FOUND + _answered(3, _REG_BACK)),
    ),
    # What the earlier process of a node has confirmed is found at once after its restart; what was
    # allocated since is not.
    case("I-G3", _NODE + _REGISTRY_STARTS + _READ + _FOUND + _GONE, (_REGISTRY_STARTS, "")),
    case(
        "I-G3",
        _NODE + _REGISTRY_STARTS + _READ + _FOUND + _GONE,
        (_NODE + _REGISTRY_STARTS, _REGISTRY_STARTS + _NODE),
    ),
    case(  # a registry that starts again confirms nothing
        "I-G3",
        _NODE + _REGISTRY_STARTS + _READ + _FOUND + _GONE,
        (_NODE + _REGISTRY_STARTS, _REGISTRY_STARTS + _NODE + _REGISTRY_STARTS),
    ),
    case("I-G4", _WHOLE, ("t 5", "t 30")),
    case("I-G4", _WHOLE + "t 30\n", (_AWAY + _TELLS, "")),
    case("I-G5", _WHOLE, ('"value":"disconnected"', '"value":"live"')),
    case(
        "I-G5",
        _WHOLE,
        (_TELLS, _TELLS + _TELLS.replace("update 9", "update 10")),
        forbids="a notification of one status of a record",
    ),
    case("I-G6", _WHOLE, ('"runtime":"RA"', '"runtime":"RB"')),
    case("I-G6", _WHOLE, ('"RA/p2phandler/1"', '"PH"')),
)

_HERE = (
    "bodies\n"
    + RUNTIME
    + "bus add components RA RA/registry writer=local\nbus add components SA SA writer=node-stub\n"
)
_REMOVE, _ADD = ('"operation":"remove"', '"operation":"add"')


def _take(verb: str, number: int, ends: str, body: str) -> str:
    """Let the Message BUS take a message of this runtime, or of another by its stub."""
    by = "RA/registry" if ends.startswith(("RA", "PQ", "C1")) else "SA"
    return f"bus take {verb} {number} {ends} by={by} body={body}\n"


def _given_to(listener: str, verb: str, number: int, ends: str, body: str) -> str:
    delivered = f"bus deliver {verb} {number} {ends} listener={listener} body={body}\n"
    return _take(verb, number, ends, body) + delivered


def _back(number: int, ends: str, body: str = '{"code":200}') -> str:
    called = f"bus callback 200 {number} {ends} body={body}\n"
    return _take("200", number, ends, body) + called


def _change(listener: str, number: int, runtime: str, operation: str, address: str) -> str:
    ends = f"{runtime}/registry>{runtime}/registry/changes"
    body = f'{{"operation":"{operation}","value":["{address}"]}}'
    return _given_to(listener, "update", number, ends, body)


_TO_REGISTRY = "bus add listeners RA/registry RA/registry\n"
_TO_OTHERS = "bus add listeners RA/registry/changes SA\nbus add listeners RB/registry SA\n"
_CAME_HERE = "".join(f"bus add components {one} {one} writer=local\n" for one in ("HA", "HB"))
_NOT_HERE = _change("SA", 2, "RA", "add", "HC") + _change("SA", 3, "RA", "remove", "HC")
_PUBLISHES = (
    _HERE
    + _TO_REGISTRY
    + _TO_OTHERS
    + _CAME_HERE
    + _change("SA", 4, "RA", "add", "HA")
    + _given_to("RA/registry", "subscribe", 5, "RB/registry>RA/registry", '{"resources":[]}')
    + _given_to("SA", "200", 5, "RA/registry>RB/registry", '{"code":200,"value":["HA","HB"]}')
    + _change("SA", 6, "RA", "remove", "HA")
)
_ANSWERED = _given_to(
    "SA", "200", 5, "RA/registry>RB/registry", '{"code":200,"value":["HA"]}'
).replace("body=", "digest=a body=")
_SENT_AGAIN = _ANSWERED.replace("deliver", "drop").replace("listener=SA", "reason=no-target")
_LIVE_TOO = _change("SA", 6, "RA", "add", "HB")
_ANSWERED_AGAIN = (
    _HERE
    + _TO_REGISTRY
    + _TO_OTHERS
    + _CAME_HERE
    + _change("SA", 4, "RA", "add", "HA")
    + _given_to("RA/registry", "subscribe", 5, "RB/registry>RA/registry", '{"resources":[]}')
    + _ANSWERED
    + _LIVE_TOO
    + _SENT_AGAIN
)
_FOLLOWS = (
    _HERE
    + "bus add listeners RB/registry SA\nbus add listeners RB/registry/changes RA/registry\n"
    + _given_to("SA", "subscribe", 5, "RA/registry>RB/registry", '{"resources":[]}')
    + _back(5, "RB/registry>RA/registry", '{"code":200,"value":["HC"]}')
    + _change("RA/registry", 6, "RB", "remove", "HC")
    + _change("RA/registry", 7, "RB", "add", "HC")
)
_OVERTAKEN = (
    _HERE
    + "bus add listeners RB/registry SA\nbus add listeners RB/registry/changes RA/registry\n"
    + _given_to("SA", "subscribe", 4, "RA/registry>RB/registry", '{"resources":[]}')
    + _back(4, "RB/registry>RA/registry", '{"code":200,"value":["HB"]}')
    + _given_to("SA", "subscribe", 5, "RA/registry>RB/registry", '{"resources":[]}')
    + _change("RA/registry", 6, "RB", "add", "HC")
    + _change("RA/registry", 7, "RB", "remove", "HB")
    + _back(5, "RB/registry>RA/registry", '{"code":200,"value":["HB"]}')
    + _change("RA/registry", 8, "RB", "remove", "HC")
    + _change("RA/registry", 9, "RB", "add", "HB")
)

CHANGES = (
    case("I-C2", _PUBLISHES, *2 * [('["HA","HB"]', '["HB"]')]),
    case(  # what was answered may be sent again, and nothing else
        "I-C2",
        _ANSWERED_AGAIN,
        (_LIVE_TOO + _SENT_AGAIN, _LIVE_TOO + _SENT_AGAIN.replace("=a", "=b")),
        allows="the answer to a request that arrives again",
    ),
    case("I-C4", _PUBLISHES, *2 * [('["HA","HB"]', '["HA","HC"]')]),
    case("I-C4", _PUBLISHES, (_CAME_HERE, _CAME_HERE + _NOT_HERE)),
    case("I-C6", _FOLLOWS, *2 * [(_REMOVE, _ADD)], forbids="a change of a registry's addresses"),
    case("I-C6", _OVERTAKEN, (_change("RA/registry", 6, "RB", "add", "HC"), "")),
    case("I-C6", _OVERTAKEN, (_change("RA/registry", 7, "RB", "remove", "HB"), "")),
)

_PATH = "RA/ua>MN/sm"
_SET_HANDLER = _given_to("SA", "subscribe", 6, _PATH, '{"resources":["RA/p2phandler/1"]}') + _back(
    6, "MN/sm>RA/ua"
)
_SET_REQUESTER = _given_to(
    "SA", "subscribe", 7, "RA/registry>MN/sm", '{"resources":["PQ"]}'
) + _back(7, "MN/sm>RA/registry")
_LOADED = (
    "bus add listeners RA/p2phandler/1/status r\n"
    "loader step stub_deployment RA/p2phandler/1 [*] load deploying\n"
    "loader step stub_deployment RA/p2phandler/1 deploying loaded deployed\n"
)
_TO_NODE = "bus add listeners MN/sm SA\nbus add listeners DR SA\n"
_NAMED = _given_to("SA", "create", 8, "RA/registry>DR", _RECORD)
_RECORDED = _HERE + _TO_NODE + _LOADED + _SET_HANDLER + _NAMED
_INVITES = 'x xmit create 9 C1/subscription>PH stub=SA link=L1 seq=1 via=SA body={"source":"PQ"}\n'
_INVITED = _HERE + _TO_NODE + _SET_REQUESTER + _INVITES
_BINDS = "registry add p2p RB live PQ HC\n"
_KNOWN = 'stub:SA rcv 200 1 DR>RA/registry body={"value":{"url":"HC","runtime":"RB"}}\n'
_LISTED = 'PQ rcv 200 1 RB/registry>RA/registry stub=PQ body={"value":["HC"]}\n'
_FROM_THERE = "PQ rcv read 1 HC>HA stub=PQ\n"
_STATUS = "bus add listeners PQ/status r\n" + _given_to(
    "r", "create", 1, "PQ>PQ/status", '{"value":"created","resource":"RB"}'
)

LINKS = (
    case("I-P9", _RECORDED, (_LOADED, "")),
    case("I-P9", _RECORDED, (_SET_HANDLER + _NAMED, _NAMED + _SET_HANDLER)),
    case("I-P10", _INVITED, (_SET_REQUESTER + _INVITES, _INVITES + _SET_REQUESTER)),
    *(
        case("I-R8", _HERE + known + _BINDS, (known, ""))
        for known in (_KNOWN, _LISTED, _FROM_THERE)
    ),
    case("I-S11", _HERE + _STATUS, *2 * [(',"resource":"RB"', "")]),
    case("I-S11", _HERE + _STATUS, *2 * [('"resource":"RB"', '"resource":"RA"')]),
    case("I-S11", _HERE + _STATUS, *2 * [('"resource":"RB"', '"resource":"HB"')]),
)
