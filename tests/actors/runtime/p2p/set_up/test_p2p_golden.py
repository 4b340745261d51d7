"""The set-up of a P2P link, step by step, as the golden scenarios have it (SC-16, SC-17).

The lists are picked by hand from the scenarios; where these leave an order open (an
object's first candidates may come before or after the invitation is answered) the
lists say nothing.
"""

from specs.trace import Kind, Op
from tests.support.runtime.domain import go_live, open_domain

REQUESTER_SIDE = [
    "p2p [*] created",
    "create PQ PQ/status",
    "create PQ RA/sm",
    "response RA/sm PQ 200",
    "p2p created in-progress",
    "update PQ PQ/status",
    "create PQ RA/sm",
    "create C1/subscription PH",
    "response PH C1/subscription 200",
    "response RA/sm PQ 200",
    "subscribe RB/sm C1/subscription",
    "response C1/subscription RB/sm 200",
    "create C2/subscription PQ",
    "response PQ C2/subscription 200",
    "subscribe PQ RA/sm",
    "response RA/sm PQ 100",
    "subscribe RA/sm C2/subscription",
    "response C2/subscription RA/sm 200",
    "response RA/sm PQ 200",
    "link open",
    "p2p in-progress live",
    "update PQ PQ/status",
    "row RB live PQ",
]

HANDLER_SIDE = [
    "create C1/subscription PH",
    "p2p [*] created",
    "create PH PH/status",
    "row RA created None",
    "response PH C1/subscription 200",
    "subscribe PH RB/sm",
    "response RB/sm PH 100",
    "subscribe RB/sm C1/subscription",
    "response C1/subscription RB/sm 200",
    "response RB/sm PH 200",
    "create PH RB/sm",
    "response RB/sm PH 200",
    "p2p created in-progress",
    "update PH PH/status",
    "create PH RB/sm",
    "create C2/subscription PQ",
    "response PQ C2/subscription 200",
    "response RB/sm PH 200",
    "link open",
    "p2p in-progress live",
    "update PH PH/status",
    "listener bus PHC",
    "subscribe RB/registry PH",
    "listener minibus:PH PHC",
    "response PH RB/registry 200",
    "row RA live PHC",
]


def reported(domain, member):
    """A member's trace in the words of the scenarios."""
    ra, rb = (domain[name].runtime.url for name in ("alice", "bob"))
    names = {
        f"{rb}/p2phandler/1/conn/1": "PHC",
        f"{rb}/p2phandler/1": "PH",
        f"{ra}/p2prequester/1": "PQ",
        ra: "RA",
        rb: "RB",
    }
    written = [
        fact.key for each in ("alice", "bob") for fact in domain[each].facts(Op.WRITE, Kind.OBJ)
    ]
    names |= dict(zip(dict.fromkeys(written), ("C1", "C2"), strict=True))
    lines = [line(actor, fact) for actor, fact in member.tracer.records]
    return [short(text, names) for text in lines if text]


def short(text, names):
    for url, name in names.items():
        text = text.replace(url, name)
    return text


def line(actor, fact):
    if fact.k is Kind.MSG and fact.op is Op.SUBMIT:
        code = f" {fact.code}" if fact.code else ""
        return f"{fact.type} {fact.from_} {fact.to}{code}"
    if fact.machine == "p2p_connection":
        return f"p2p {fact.old} {fact.new}"
    if fact.k is Kind.LINK:
        return f"link {fact.op}"
    if fact.table == "p2p":
        return f"row {fact.key} {' '.join((fact.val or '').split(' ')[:2])}"
    if fact.table == "listeners":
        return f"listener {actor} {fact.key}"
    return ""


def assert_in_order(wanted, lines):
    left = iter(lines)
    missing = [each for each in wanted if each not in left]
    assert missing == []


async def test_the_requester_side_goes_as_the_golden_scenario(autojump_clock):
    """P2P-08, P2P-11, I-P5."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        assert_in_order(REQUESTER_SIDE, reported(domain, domain["alice"]))


async def test_the_handler_side_goes_as_the_golden_scenario(autojump_clock):
    """P2P-09, P2P-10, P2P-11, P2P-17."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        assert_in_order(HANDLER_SIDE, reported(domain, domain["bob"]))
