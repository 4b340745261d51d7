"""The handler's controllers: what each goes through (P2P-09, P2P-19, I-P5, I-P8, I-P20)."""

from fsm.engine import Step
from fsm.machines.handler_controller import HANDLER_CONTROLLER
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import LinkTerms, Loss, Opening, Role
from specs.bodies.object import ConnectionData
from tests.fsm.p2p.table_edges import declared, edges
from tests.support.link_calls import tell, told_end
from tests.support.p2p_objects import believed

SMALL, MIDDLE, GREAT = (f"hyperty-runtime://{d}.ex/r{d}" for d in "abc")
OFFER = believed(ConnectionData(f"{MIDDLE}/p2prequester/1"))
ACCEPTED, DIALLED = Opening.ACCEPTED, Opening.DIALLED


class Handler:
    """A handler that a runtime in the middle invites to a link."""

    def __init__(self, own=SMALL, remote=MIDDLE):
        self.url = f"{own}/p2phandler/1"
        self.own = own
        self.ends = {}
        self.remote = remote
        self.now = 0.0
        self.effects = []
        self.invited()

    @property
    def steps(self):
        return [effect for effect in self.effects if isinstance(effect, Step)]

    def keep(self, effects):
        self.effects += effects
        return effects

    def invited(self, number=1):
        requester, link = f"{self.remote}/p2prequester/1", f"{self.url}/conn/{number}"
        terms = LinkTerms(self.own, self.remote, link, requester)
        offer = f"{requester}/offer"
        self.ends[number] = told_end(terms, Role.HANDLER, DialPolicy(("tcp",)), offer)
        return self.feed(tell.start(), link=number)

    def feed(self, *inputs, link=1):
        end = self.ends[link]
        return [effect for each in inputs for effect in self.keep(end.tell(each, self.now))]

    def wait(self):
        self.now = self.ends[1].deadline()
        return self.feed(tell.time_over())


ROW, OWN_ROW = tell.row_reported(has_own_request=False), tell.row_reported(has_own_request=True)
TO_ANSWERING = (ROW, OFFER)
TO_OPEN = (*TO_ANSWERING, tell.object_created(), tell.link_opened("L1", ACCEPTED))


def fed(*inputs, own=SMALL):
    handler = Handler(own)
    handler.feed(*inputs)
    return handler


def observing():
    return fed()


def accepted():
    return fed(ROW)


def accepted_although_we_asked_too():
    return fed(OWN_ROW, own=GREAT)


def simultaneous_open():
    return fed(OWN_ROW)


def reported_twice():
    return fed(ROW, OWN_ROW)


def closed_by_the_registry_before_the_row_is_reported():
    """Simultaneous open in the other order: the registry's command comes before its answer."""
    return fed(tell.disconnect("simultaneous open"), OWN_ROW)


def answering():
    return fed(*TO_ANSWERING)


def object_refused():
    return fed(*TO_ANSWERING, tell.object_refused("no"))


def offer_not_seen():
    handler = fed(ROW)
    handler.wait()
    return handler


def link_did_not_open():
    handler = fed(*TO_ANSWERING, tell.object_created())
    handler.wait()
    return handler


def offer_withdrawn():
    return fed(ROW, tell.peer_object_deleted())


def offer_seen_again():
    return fed(*TO_ANSWERING, OFFER)


def opened():
    return fed(*TO_OPEN)


def lost_and_back():
    return fed(*TO_OPEN, tell.link_lost("L1", Loss.BROKEN), tell.link_opened("L2", ACCEPTED))


def replaced_by_the_peer():
    return fed(*TO_OPEN, tell.link_opened("L2", ACCEPTED))


def lost_for_good():
    handler = fed(*TO_OPEN, tell.link_lost("L1", Loss.BROKEN))
    handler.wait()
    return handler


def goodbye():
    return fed(*TO_OPEN, tell.link_lost("L1", Loss.ORDERLY), tell.time_over())


def disconnected():
    return fed(*TO_OPEN, tell.disconnect("asked"), tell.disconnect("again"))


# fmt: off
HISTORIES = [
    (observing,                                     "observing"),
    (accepted,                                      "observing observing"),
    (accepted_although_we_asked_too,                "observing observing"),
    (simultaneous_open,                                         "observing closed"),
    (reported_twice,                                    "observing observing"),
    (closed_by_the_registry_before_the_row_is_reported, "observing closed"),
    (answering,                                     "observing observing answering"),
    (object_refused,                                "observing observing answering closed"),
    (offer_not_seen,                                "observing observing closed"),
    (link_did_not_open,                             "observing observing answering closed"),
    (offer_withdrawn,                               "observing observing closed"),
    (offer_seen_again,                              "observing observing answering"),
    (opened,                                        "observing observing answering open"),
    (lost_and_back,                                 "observing observing answering open"),
    (replaced_by_the_peer,                          "observing observing answering open"),
    (lost_for_good,                                 "observing observing answering open closed"),
    (goodbye,                                       "observing observing answering open closed"),
    (disconnected,                                  "observing observing answering open closed"),
]




def test_these_are_all_paths_of_a_controller():
    taken = [edges(HANDLER_CONTROLLER, history().steps) for history, _ in HISTORIES]
    assert set.union(*taken) == declared(HANDLER_CONTROLLER)


# ---- who gives way




def test_a_refused_invitation_ends_the_link_and_says_so():
    handler = Handler()
    effects = [each for each in handler.feed(OWN_ROW) if not isinstance(each, Step)]
    assert [each.name for each in effects] == [
        "answer_invitation",
        "announce",
        "withdraw",
        "end",
    ]
    assert handler.ends[1].has_ended
