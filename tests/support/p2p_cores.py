"""The real P2P cores, driven step by step as a composition says, and what they do then.

What is no core's (networks, transport links, sync managers, time) is the composition's own;
what a core decides is told in the composition's words: which part moved by which trigger,
and which message went into which channel.
"""

from collections import defaultdict

import attrs

from fsm.compositions.p2p_scene import has_candidates, negotiation_of, offering
from fsm.engine import Step
from fsm.machines.p2p_connection import State
from fsm.p2p import effects as do
from fsm.p2p import inputs as seen
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.handler import P2PHandlerCore
from fsm.p2p.negotiation import Role as EntryRole
from fsm.p2p.negotiation import beginning, is_plea
from fsm.p2p.negotiation import negotiation_of as read_negotiation
from fsm.p2p.negotiation import plea as write_plea
from fsm.p2p.requester import P2PRequesterCore
from fsm.registry.resolve import effects as tells
from fsm.registry.resolve.inputs import StatusSeen
from fsm.registry.resolve.jobs import ResolveJobs
from fsm.registry.resolve.link_table import LinkTable
from fsm.registry.resolve.record_cache import RecordCache
from specs.bodies.sync import Candidate, ConnectionData
from specs.reply_code import LAST_SUCCESS, Code

POLICY = DialPolicy(("tcp",))
LONG = 10_000.0
"""Seconds in which every cooling is over."""


@attrs.define
class Outcome:
    """What came of one input.

    Attributes:
        moves: By part, `(trigger, new state)` in order.
        sends: By channel, messages in order.
    """

    moves: dict = attrs.field(factory=lambda: defaultdict(list))
    sends: dict = attrs.field(factory=lambda: defaultdict(list))

    def send(self, channel, message):
        self.sends[channel].append(message)

    def plain(self):
        return dict(self.moves), dict(self.sends)


class Cores:
    """Both runtimes' cores. All inputs name ends as the composition does.

    Attributes:
        now: Seconds; it goes on when a deadline is to be over.
    """

    def __init__(self, scene):
        self.scene = scene
        self.now = 0.0
        self.tables = {
            x: LinkTable(scene.address(x), ResolveJobs(), RecordCache()) for x in scene.runtimes
        }
        self.handlers = {
            x: P2PHandlerCore(scene.address(x), self.handler_url(x), POLICY) for x in scene.runtimes
        }
        self.requesters = {}
        self.ends = {end.name: end for end in scene.all_ends()}
        self.of_link = {self.link(end): end for end in self.ends.values()}
        self.attempts = {}
        self.pleas = {}
        self.renewed = {}
        self.told = {}
        self.out = Outcome()
        self.rows = {x: [] for x in scene.runtimes}

    def handler_url(self, x):
        return f"{self.scene.address(x)}/p2phandler/1"

    def link(self, end):
        """The address of an end of a link: PQ or PC."""
        if end.is_requester:
            return f"{self.scene.address(end.own)}/p2prequester/{end.number}"
        return f"{self.handler_url(end.own)}/conn/{end.number}"

    def stub(self, end):
        return self.link(end) if end.is_requester else self.handler_url(end.own)

    def remote(self, end):
        return self.scene.address(end.other)

    def url(self, end):
        return f"{self.link(end)}/object"

    def begin(self, told):
        """Remember the values before the step."""
        self.told, self.out, self.renewed = told, Outcome(), {}

    def peer(self, end):
        """The end that `end` knows at the other side."""
        number = self.told[end.var("peer")]
        return next(one for one in self.scene.peers(end) if str(one.number) == number)

    def watcher(self, end):
        number = self.told[end.var("watched by")]
        return next((one for one in self.scene.peers(end) if str(one.number) == number), None)

    # --- inputs ---------------------------------------------------------------------------

    def feed(self, end, happened):
        if end.is_requester:
            core = self.requesters.get(end.name)
            if core is not None:
                self.all(end, core.feed(happened, self.now))
            return
        for each in self.handlers[end.own].feed(self.link(end), happened, self.now):
            self.all(self.of_link[each.link], [each.effect])

    def invited(self, x, requester):
        effects = self.handlers[x].invited(
            self.url(requester), self.link(requester), self.remote_of(x), self.now
        )
        for each in effects:
            self.all(self.of_link[each.link], [each.effect])

    def remote_of(self, x):
        return self.scene.address(self.scene.other(x))

    def disconnect_handler(self, x):
        for each in self.handlers[x].disconnect((self.remote_of(x),), "asked", self.now):
            if each.link:
                self.all(self.of_link[each.link], [each.effect])

    def deploy(self, end):
        address, remote = self.scene.address(end.own), self.remote(end)
        terms = seen.LinkTerms(address, remote, self.link(end), self.handler_url(end.other))
        self.requesters[end.name] = P2PRequesterCore(terms, POLICY)
        self.feed(end, seen.Started())

    def time_passes(self, end):
        core = (
            self.requesters[end.name]
            if end.is_requester
            else self.handlers[end.own]._links[self.link(end)]
        )
        assert core.deadline() < float("inf"), f"{end.name} waits without end"
        self.now = max(self.now, core.deadline())
        self.feed(end, seen.TimePassed())

    def shown(self, end, offers, plea):
        number = negotiation_of(offers)
        status = beginning(number) if plea == "0" else write_plea(number, int(plea))
        peers = (Candidate("tcp", f"11.0.0.1:{number}", "00"),) if has_candidates(offers) else ()
        data = ConnectionData(owner=self.stub(end), status=status, ice_candidates=peers)
        self.feed(end, seen.PeerObjectSeen(data))

    def status(self, end, value):
        told = StatusSeen(self.stub(end), value, self.remote(end), self.link(end))
        effects = self.tables[end.own].status(told, self.now)
        if value == "failed" and self.told[f"{end.own} entry of"] != end.name:
            # Who failed is over: that its stub is removed is no news to it.
            effects = [effect for effect in effects if not isinstance(effect, tells.Undeploy)]
        self.registry(end.own, effects)

    def asks_for_row(self, end):
        self.rows[end.own].append(end)
        self.answer_rows(end.own)

    def answer_rows(self, x):
        """Answer who asked for the row, unless our own request may still become live."""
        row = self.tables[x].row(self.remote_of(x), self.handler_url(x))
        if row is not None and row.is_held(self.handler_url(x)):
            return
        own = row is not None and row.role is EntryRole.REQUESTER
        waiting, self.rows[x] = self.rows[x], []
        for end in waiting:
            self.out.send(end.down, f"{end.name} is told of {'an' if own else 'no'} own request")

    def plan(self, x):
        self.now += LONG
        plan = tells.RequesterPlan(self.remote_of(x), self.handler_url(self.scene.other(x)), "")
        self.registry(x, self.tables[x].plan(plan, self.now))

    def tick(self, x):
        self.now = max(self.now, self.tables[x].deadline())
        self.registry(x, self.tables[x].tick(self.now))

    # --- effects of stubs -----------------------------------------------------------------

    def all(self, end, effects):
        for effect in effects:
            self.one(end, effect)

    def one(self, end, effect):
        if isinstance(effect, Step):
            self.moved(effect)
            return
        match effect:
            case do.Announce(state):
                self.announced(end, state)
            case do.AskRow() | do.Ended() | do.Answered(Code.GONE):
                self.tells_registry(end, effect)
            case do.Dial(_, attempt):
                self.attempts[end.name] = attempt
            case do.ReleaseLink(link):
                self.closed(end, link, "breaks")
            case do.CloseLink(link):
                # Who never used it says no goodbye.
                in_use = self.told[end.var("link")] == link
                self.closed(end, link, "says goodbye" if in_use else "breaks")
            case _:
                self.on_object(end, effect)

    def announced(self, end, state):
        """That a requester is in progress for the first time nobody asks."""
        is_first = self.told[end.name] == State.CREATED and state is State.IN_PROGRESS
        if not (end.is_requester and is_first):
            self.out.send(end.up, f"{end.name} is {state}")

    def tells_registry(self, end, effect):
        words = {do.AskRow: "asks for the row", do.Answered: "is not there"}
        if not end.is_requester:
            words[do.Ended] = "is over"
        if type(effect) in words:
            self.out.send(end.up, f"{end.name} {words[type(effect)]}")

    def closed(self, end, link, word):
        if self.told[f"link {link} {end.own}"] == "up":
            self.out.send(f"link to {end.other}", f"link {link} {word}")

    def on_object(self, end, effect):
        watcher = self.watcher(end)
        match effect:
            case do.Invite():
                to = "" if end.is_requester else f" {self.peer(end).name}"
                self.out.send(end.out, f"{end.name} invites{to}")
            case do.AnswerInvitation(url, code):
                word = "refused" if code > LAST_SUCCESS else "accepted"
                self.out.send(end.out, f"{self.owner(url).name} is {word}")
            case do.Observe(url):
                self.out.send(end.out, f"{end.name} observes {self.owner(url).name}")
            case do.Offer():
                offers = offering("yes", negotiation_of(self.offers(end)))
                self.changed(end, offers, self.told[end.var("plea")])
            case do.Plead(status):
                self.pleas[end.name] = self.pleas.get(end.name, 0) + 1
                self.changed(end, self.offers(end), self.plea(self.pleas[end.name]))
                assert is_plea(status)
                assert read_negotiation(status) == negotiation_of(self.offers(end))
            case do.Renew(number):
                # Pleas are counted on; by the new negotiation they are others all the same.
                self.pleas[end.name] = 0
                self.renewed[end.name] = offering("no", number)
                self.changed(end, self.renewed[end.name], "0")
            case do.Withdraw() if watcher is not None:
                self.out.send(end.out, f"{end.name} is withdrawn for {watcher.name}")

    def changed(self, end, offers, plea):
        watcher = self.watcher(end)
        if watcher is not None:
            self.out.send(end.out, f"{end.name} changes to {offers} {plea} for {watcher.name}")

    def offers(self, end):
        """What the own object has, after what was done to it in this step."""
        return self.renewed.get(end.name, self.told[end.var("offers")])

    def plea(self, count):
        return str((count - 1) % (len(self.scene.pleas) - 1) + 1)

    def owner(self, url):
        return next(end for end in self.ends.values() if self.url(end) == url)

    def moved(self, step):
        if step.machine == "p2p_entry":
            x = next(x for x in self.scene.runtimes if step.key.startswith(self.scene.address(x)))
            part = f"{x} entry"
        else:
            end = self.of_link[step.key.rpartition("|")[2]]
            part = end.control if step.machine == "handler_controller" else end.name
        self.out.moves[part].append((step.cause, step.new))

    # --- effects of registries ------------------------------------------------------------

    def registry(self, x, effects):
        """Undeploying a requester that is to disconnect says no more than that."""
        for effect in effects:
            match effect:
                case Step(machine="p2p_entry"):
                    self.moved(effect)
                case tells.Connect(stub):
                    self.out.send(
                        self.of_link[stub].down, f"{self.of_link[stub].name} shall connect"
                    )
                case tells.Yield(stub) | tells.Resume(stub):
                    verb = "yield" if isinstance(effect, tells.Yield) else "resume"
                    end = self.of_link[stub]
                    self.out.send(end.down, f"{end.name} shall {verb}")
                case tells.Disconnect(link=link) | tells.Undeploy(link):
                    self.undeploy(self.of_link[link])
                case tells.RegisterLink(link):
                    end = self.of_link[link]
                    self.out.send(end.down, f"{end.name} shall listen")
        self.answer_rows(x)

    def undeploy(self, end):
        order = f"{end.name} shall disconnect"
        if order not in self.out.sends[end.down]:
            self.out.send(end.down, order)
