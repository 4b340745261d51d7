"""A registry's core with a clock, in the situations that tests begin with."""

from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.intent import Intent
from fsm.p2p.link_policy import LinkPolicy, P2pUse
from fsm.registry.resolve import resolve_io as rs
from fsm.registry.resolve.config import ResolveConfig, Topology
from fsm.registry.resolve.resolve import ResolveCore
from specs.bodies.registry import Record

RA, RB, RC = (f"hyperty-runtime://{d}.ex/r{d}" for d in "abc")
HB, HC = "hyperty://b.ex/hb", "hyperty://c.ex/hc"
S1, S2 = f"{RA}/protostub/1", f"{RA}/protostub/2"
PQ, PH, PHB = f"{RA}/p2prequester/1", f"{RA}/p2phandler/1", f"{RB}/p2phandler/1"
PC = f"{PH}/conn/1"
CRQ = "hyperty-catalogue://catalogue.b.ex/.well-known/protocolstub/P2PRequester"
RECORD = Record(HB, RB, p2p_handler=PHB, p2p_requester=CRQ)
PEER_NEWS = rs.PeerKnown | rs.PeerGone
REACH, KNOWN, NODE = Intent.REACH, Intent.KNOWN, Intent.NODE


class Registry:
    """A core with a clock; answers come without the table's rows, the steps and the news.

    Attributes:
        steps: Every step so far.
        news: What whoever follows links was reported so far.
        peers: Which links lead where, as the bus was reported so far.
    """

    def __init__(self, wanted=P2pUse.WHENEVER_POSSIBLE, topology=Topology.TRIANGLE, runtime=RA):
        options = wanted if isinstance(wanted, LinkPolicy) else LinkPolicy(wanted)
        self.core = ResolveCore(ResolveConfig(runtime, "a.ex", options, topology))
        self.now = 0.0
        self.steps = []
        self.news = []
        self.peers = []

    def feed(self, *inputs):
        effects = [each for happened in inputs for each in self.core.feed(happened, self.now)]
        self.steps += [effect for effect in effects if isinstance(effect, Step)]
        self.news += [effect for effect in effects if isinstance(effect, rs.LinkEvents)]
        self.peers += [effect for effect in effects if isinstance(effect, PEER_NEWS)]
        aside = RowChanged | Step | rs.LinkEvents | PEER_NEWS
        return [effect for effect in effects if not isinstance(effect, aside)]

    def ask(self, to=HB, intent=REACH):
        return self.feed(rs.Asked(to, intent))

    def route(self, to=HB, intent=REACH):
        """Where a message goes now."""
        routes = [effect for effect in self.ask(to, intent) if isinstance(effect, rs.Route)]
        return routes[0].url if routes else None

    def status(self, stub, value, link=None, remote=RB):
        return self.feed(rs.StatusSeen(stub, value, remote, link or stub))

    def wait(self):
        self.now = self.core.deadline()
        return self.feed(rs.TimePassed())


def with_node(**kwargs):
    registry = Registry(**kwargs)
    registry.ask("domain://registry.b.ex")
    registry.feed(rs.Deployed(S1))
    return registry


def requesting():
    registry = with_node()
    registry.ask()
    registry.feed(rs.RecordRead(HB, RECORD), rs.PathSet(PQ), rs.Deployed(PQ))
    registry.status(PQ, "created")
    return registry


def linked():
    registry = requesting()
    registry.status(PQ, "in-progress")
    registry.status(PQ, "live")
    return registry


def handling():
    registry = with_node()
    registry.status(PH, "created", PC)
    registry.status(PH, "in-progress", PC)
    return registry
