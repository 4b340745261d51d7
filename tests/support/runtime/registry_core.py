"""A registry's core with a clock and a port, in the situations that tests begin with."""

from inspect import signature

from fsm.effects import Intent
from fsm.p2p.link_policy import LinkPolicy, P2pUse
from fsm.registry.resolve.links import ResolveConfig
from fsm.registry.resolve.resolve import ResolveCore
from fsm.registry.resolve.searches import RoutesPort
from fsm.registry.resolve.topology import Topology
from specs.bodies.registry import Record

RA, RB, RC = (f"hyperty-runtime://{d}.ex/r{d}" for d in "abc")
HB, HC = "hyperty://b.ex/hb", "hyperty://c.ex/hc"
S1, S2 = f"{RA}/protostub/1", f"{RA}/protostub/2"
PQ, PH, PHB = f"{RA}/p2prequester/1", f"{RA}/p2phandler/1", f"{RB}/p2phandler/1"
PC = f"{PH}/conn/1"
CRQ = "hyperty-catalogue://catalogue.b.ex/.well-known/protocolstub/P2PRequester"
RECORD = Record(HB, RB, p2p_handler=PHB, p2p_requester=CRQ)
REACH, KNOWN, NODE = Intent.REACH, Intent.KNOWN, Intent.NODE


class Call:
    """A call of the core or of its port, with its arguments by name, but for the time."""

    def __init__(self, name, *args, **named):
        is_of_port = hasattr(RoutesPort, name)
        of = signature(getattr(RoutesPort if is_of_port else ResolveCore, name))
        # A call of the core lacks the time.
        given = (of.bind if is_of_port else of.bind_partial)(None, *args, **named)
        given.apply_defaults()
        self.name, self.arguments = name, given.arguments
        del self.arguments["self"]

    def __getattr__(self, name):
        try:
            return self.__dict__["arguments"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __eq__(self, other):
        return (self.name, self.arguments) == (other.name, other.arguments)

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"{self.name}({self.arguments})"


class Calls:
    """Makes calls: `call.read_record(HB)`."""

    def __getattr__(self, name):
        return lambda *args, **named: Call(name, *args, **named)


call = Calls()


class RecordingPort:
    """Keeps the calls of the core; it does not call the core."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args, **named: self.calls.append(Call(name, *args, **named))

    def take(self):
        """Return the calls since the last time."""
        calls, self.calls = self.calls, []
        return calls


def status_seen(stub, value, remote=None, link=None, why=""):
    """The status of the stub of a node, or of a link to a runtime."""
    if remote is None:
        return call.node_status(stub, value, link, why)
    return call.link_status(stub, value, remote, link)


NEWS, PEERS = {"link_up", "link_down", "link_gone"}, {"add_peer", "remove_peer"}
ASIDE = {"step", "row", *NEWS, *PEERS}


class Registry:
    """A core with a clock; answers come without the table's rows, the steps and the news.

    Attributes:
        steps: Every step so far.
        rows: Every row that was traced so far.
        news: What whoever follows links was reported so far.
        peers: Which links lead where, as the bus was reported so far.
    """

    def __init__(self, wanted=P2pUse.WHENEVER_POSSIBLE, topology=Topology.TRIANGLE, runtime=RA):
        options = wanted if isinstance(wanted, LinkPolicy) else LinkPolicy(wanted)
        self.set_config(ResolveConfig(runtime, "a.ex", options, topology))
        self.now = 0.0
        self.steps, self.rows, self.news, self.peers = [], [], [], []

    def set_config(self, config):
        self.port = RecordingPort()
        self.core = ResolveCore(config, self.port)

    def feed(self, *inputs):
        """Call the core; return what it asked of its port."""
        for called in inputs:
            give(self.core, called, self.now)
        calls = self.port.take()
        self.steps += [one.step for one in calls if one.name == "step"]
        self.rows += [one.row for one in calls if one.name == "row"]
        self.news += [one for one in calls if one.name in NEWS]
        self.peers += [one for one in calls if one.name in PEERS]
        return [one for one in calls if one.name not in ASIDE]

    def ask(self, to=HB, intent=REACH):
        return self.feed(call.ask(to, intent))

    def route(self, to=HB, intent=REACH):
        """Where a message goes now."""
        routes = [one for one in self.ask(to, intent) if one.name == "route"]
        return routes[0].url if routes else None

    def status(self, stub, value, link=None, remote=RB):
        return self.feed(status_seen(stub, value, remote, link or stub))

    def wait(self):
        self.now = self.core.deadline()
        return self.feed(call.time_over())


def give(core, called, now):
    """Call a core by an input; what is left out is None."""
    method = getattr(core, called.name)
    given = dict.fromkeys(signature(method).parameters) | called.arguments
    method(**(given | ({"now": now} if "now" in given else {})))


def with_node(**kwargs):
    registry = Registry(**kwargs)
    registry.ask("domain://registry.b.ex")
    registry.feed(call.stub_deployed(S1))
    return registry


def requesting():
    registry = with_node()
    registry.ask()
    registry.feed(call.record_read(HB, RECORD), call.path_set(PQ), call.stub_deployed(PQ))
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
