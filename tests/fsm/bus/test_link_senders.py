"""Who may send over which link, and what waits for the proof of that (I-B10, S1)."""

from fsm.bus.link_senders import Holding, LinkSenders, SenderProof
from specs.limits.p2p import (
    FORGERIES,
    HELD_BYTES,
    HELD_BYTES_IN_ALL,
    HELD_IN_ALL,
    HELD_MESSAGES,
    PROOF_TIMEOUT,
)
from specs.limits.protocol import ERROR_WINDOW
from specs.trace import Op

RB, RC = "hyperty-runtime://b.ex/rb", "hyperty-runtime://b.ex/rc"
HB, HC = "hyperty://b.ex/hb", "hyperty://c.ex/hc"
LINKS = {"PQ": RB, "PC": RC, "PD": RB}


def linked():
    senders = LinkSenders()
    for link, remote in LINKS.items():
        senders.add_link(link, remote)
    return senders


def test_a_proof_is_a_row_and_holds_for_the_link_that_asked():
    senders = linked()
    assert senders.hold("PQ", f"{HB}/part", 1, 0.0) is Holding.ASK
    assert senders.hold("PQ", HB, 2, 0.0) is Holding.WAIT
    rows, decided = senders.set_owner(HB, RB)
    assert [(row.op, row.key, row.val) for row in rows] == [(Op.ADD, HB, "PQ")]
    assert decided == [(1, True), (2, True)]
    for address in (HB, f"{HB}/x"):
        assert senders.sender_proof("PQ", address) is SenderProof.PROVEN
    assert senders.sender_proof("PD", HB) is SenderProof.UNKNOWN
    assert [(row.op, row.key) for row in senders.set_owner(HB, RC)[0]] == [(Op.DEL, HB)]
    assert senders.sender_proof("PQ", HB) is SenderProof.UNKNOWN


def test_bytes_that_no_longer_wait_leave_room_for_others():
    """However often a link has filled its room, or all links theirs."""
    senders = linked()
    for now in range(2 * HELD_BYTES_IN_ALL // HELD_BYTES):
        assert senders.hold("PQ", HB, 1, now, HELD_BYTES) is Holding.ASK
        assert senders.hold("PQ", HB, 2, now, 1) is Holding.FULL
        assert len(senders.set_owner(HB, None)[1]) == 1


def test_a_peer_speaks_for_its_own_runtime_and_for_no_other():
    senders = linked()
    for address, standing in {
        RB: SenderProof.PROVEN,
        f"{RB}/registry": SenderProof.PROVEN,
        f"{RB}2": SenderProof.FOREIGN,
        f"{RB}2/sm": SenderProof.FOREIGN,
        RC: SenderProof.FOREIGN,
        "hyperty-runtime://b.ex": SenderProof.FOREIGN,
        "domain://registry.b.ex": SenderProof.FOREIGN,
        "domain-idp://b.ex": SenderProof.FOREIGN,
        "global://registry": SenderProof.FOREIGN,
        HB: SenderProof.UNKNOWN,
        f"comm://b.ex/{RB}": SenderProof.UNKNOWN,
    }.items():
        assert senders.sender_proof("PQ", address) is standing
    assert senders.sender_proof("no link", RB) is SenderProof.FOREIGN


def test_forgeries_are_counted_by_link_and_over_a_minute():
    senders = linked()
    early = [senders.count_forgery("PQ", 0.0) for _ in range(FORGERIES - 1)]
    early += [senders.count_forgery("PC", 1.0), senders.count_forgery("PQ", ERROR_WINDOW)]
    assert not any(early)
    late = [senders.count_forgery("PQ", ERROR_WINDOW) for _ in range(FORGERIES - 1)]
    assert late == [False] * (FORGERIES - 2) + [True]
    senders.remove_link("PQ")
    assert not senders.count_forgery("PQ", ERROR_WINDOW)


def test_waiting_messages_are_bounded_for_each_link_and_for_all():
    senders = LinkSenders()
    links = [f"link {number}" for number in range(HELD_IN_ALL // HELD_MESSAGES + 1)]
    for link in links:
        senders.add_link(link, RB)
        taken = [senders.hold(link, HB, 0, 0.0) for _ in range(HELD_MESSAGES + 1)]
        assert taken[-1] is Holding.FULL
    assert taken == [Holding.FULL] * (HELD_MESSAGES + 1)
    assert len(senders.take_overdue(PROOF_TIMEOUT)) == HELD_IN_ALL
