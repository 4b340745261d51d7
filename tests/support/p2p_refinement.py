"""A walk through a P2P composition on which the real cores are taken along."""

import re

from fsm.compositions.p2p_scene import negotiation_of
from fsm.p2p import inputs as seen
from fsm.product.rule import After, Got, Happens, Wished
from fsm.product.run import run_of
from fsm.product.steps import NO_RULE, Kind
from specs.bodies.sync import Candidate
from tests.support.p2p_cores import Cores

SHOWN = re.compile(
    r"(?P<peer>.+) (shows|changes to) (?P<offers>[\w-]+) (?P<plea>\d) for (?P<end>.+)"
)
LINK = re.compile(
    r"link (?P<link>\d) (is (?P<opening>\w+) at (?P<end>\w \w+ \d)( by offer (?P<number>\d))?"
    r"|(?P<word>breaks|says goodbye))"
)
TOLD = {
    "shall yield": seen.YieldAsked(),
    "shall resume": seen.ResumeAsked(),
    "is told of an own request": seen.RowTold(has_own_request=True),
    "is told of no own request": seen.RowTold(has_own_request=False),
}
LINK_LOST = {"breaks": seen.Loss.BROKEN, "says goodbye": seen.Loss.ORDERLY}


class Walk:
    """One walk. The composition says what happens; what comes of it, the cores say."""

    def __init__(self, scene, steps):
        self.cores = Cores(scene)
        self.steps = steps
        self.code = self.steps.encoding
        self.rules = steps.composition.rules
        self.state = self.code.start
        self.history = []

    def go(self, random):
        """Take one step; False: there is none."""
        found, refused = self.steps.of(self.state)
        assert refused == []
        if not found:
            return False
        (chosen,) = random.choices(found, [self.weight(step) for step in found])
        told = self.code.told(self.state)
        self.cores.begin(told)
        is_cores = chosen[1] != NO_RULE and self.happens(chosen)
        self.history.append((self.state, chosen))
        self.state = self.matching(chosen, found)[3] if is_cores else chosen[3]
        self.look_at_cores()
        return True

    def weight(self, step):
        """How likely a step is: runs that end at once teach little."""
        cause = self.cause(step)
        if isinstance(cause, Wished) and cause.wish.endswith("goes"):
            return 1
        return {Kind.LOST: 3, Kind.DEADLINE: 3, Kind.WISH: 20}.get(step[0], 100)

    def cause(self, step):
        return None if step[1] == NO_RULE else self.rules[step[1]].cause

    # --- what came of it ------------------------------------------------------------------

    def matching(self, chosen, found):
        """The step of the composition that the cores took; its cause is the chosen one's."""
        moves, sends = self.cores.out.plain()
        wanted = ({k: v for k, v in moves.items() if v}, {k: v for k, v in sends.items() if v})
        family = [step for step in found if self.is_akin(step, chosen)]
        for step in family:
            if self.said(step) == wanted:
                return step
        said = "\n".join(str(self.said(step)) for step in family)
        way = "\n".join(t.words for t in run_of(self.code, self.history))
        raise AssertionError(f"the cores did {wanted}\nthe rules say\n{said}\nafter\n{way}")

    def is_akin(self, step, chosen):
        one, other = self.cause(step), self.cause(chosen)
        if step[0] is not chosen[0] or one is None:
            return False
        if isinstance(one, After) and isinstance(other, After):
            # The controller and its end of the link have one deadline.
            return one.part.replace("ctl", "hnd") == other.part.replace("ctl", "hnd")
        return one == other and self.surroundings(step) == self.surroundings(chosen)

    def surroundings(self, step):
        """What is no core's: the transport links, if something happens to them by itself."""
        if isinstance(self.cause(step), Got):
            return None
        names = [name for name in self.code.place if name.startswith(("link ", "losses"))]
        dials = [name for name in self.code.place if name.endswith("dial")]
        kept = [step[3][self.code.place[name]] for name in names]
        return kept, [self.state[self.code.place[d]] == step[3][self.code.place[d]] for d in dials]

    def said(self, step):
        (taken,) = run_of(self.code, [(self.state, step)])
        moves, sends = {}, {}
        for moved in taken.moved:
            moves.setdefault(moved.part.name, []).append((moved.trigger, moved.new))
        for sent in taken.sent:
            sends.setdefault(sent.channel, []).append(sent.message)
        return moves, sends

    def look_at_cores(self):
        """State, end and dialling of every core are as the composition says."""
        told = self.code.told(self.state)
        for end in self.cores.ends.values():
            if end.is_requester:
                core = self.cores.requesters.get(end.name)
            else:
                core = self.cores.handlers[end.own]._links.get(self.cores.link(end))
            is_over = core is None or core.has_ended
            assert is_over == (told[end.var("over")] == "yes"), end.name
            if not is_over:
                assert core.state == told[end.name]
                under_way = told[end.var("dial")] in {"dialling", "again", "opening"}
                assert core._side.is_dialling == under_way, end.name
                assert core._side.knows_no_candidate == (told[end.var("dial")] == "blank")

    # --- what happens ---------------------------------------------------------------------

    def happens(self, step):
        """Let it happen to the cores; False: it is none of their business."""
        match self.cause(step):
            case Got(channel, message):
                return self.comes(channel, message)
            case After(part, trigger):
                return self.deadline(self.end(part.replace("ctl", "hnd")), trigger)
            case Happens(what):
                return self.by_itself(what, step)
            case Wished(wish):
                return self.wished(wish, step)

    def comes(self, channel, message):
        if channel.startswith("link to"):
            return self.by_link(channel.removeprefix("link to "), message)
        if "registry to" in channel:
            return self.to_stub(message)
        if "to registry" in channel:
            return self.to_registry(message)
        return self.by_network(channel.rpartition(" ")[2], message)

    def end(self, name):
        return self.cores.ends[name]

    def is_over(self, end):
        return self.cores.told[end.var("over")] == "yes"

    def by_link(self, x, message):
        found = LINK.fullmatch(message)
        link, name = found["link"], found["end"]
        if name:
            opening = seen.Opening(found["opening"])
            opened = seen.LinkOpened(link, opening, int(found["number"] or 1))
            self.feed(self.end(name), opened)
            return True
        for end in self.cores.scene.ends(x):
            if self.cores.told[end.var("link")] == link:
                self.feed(end, seen.LinkLost(link, LINK_LOST[found["word"]]))
        return True

    def feed(self, end, happened):
        self.cores.feed(end, happened)

    def to_stub(self, message):
        if message.endswith("hnd shall disconnect"):
            self.cores.disconnect_handler(message[0])
            return True
        end = self.end(" ".join(message.split()[:3]))
        match " ".join(message.split()[3:]):
            case "shall connect":
                self.feed(end, seen.ConnectAsked())
            case "shall disconnect":
                self.feed(end, seen.DisconnectAsked("asked"))
            case "shall listen":
                knows = self.cores.handlers[end.own].knows(self.cores.link(end))
                word = "has listeners" if knows else "has no listeners"
                self.cores.out.send(end.up, f"{end.name} {word}")
            case told:
                self.feed(end, TOLD[told])
        return True

    def to_registry(self, message):
        cores, end = self.cores, self.end(" ".join(message.split()[:3]))
        table, link = cores.tables[end.own], cores.link(end)
        match " ".join(message.split()[3:]):
            case "asks for the row":
                cores.asks_for_row(end)
            case "is over":
                cores.registry(end.own, table.over(cores.stub(end), link, cores.now))
            case "is not there":
                cores.registry(end.own, table.gone(link, cores.now))
            case "has listeners":
                cores.registry(end.own, table.registered(link, None, cores.now))
            case "has no listeners":
                cores.registry(end.own, table.registered(link, "404", cores.now))
            case word:
                cores.status(end, word.removeprefix("is "))
        return True

    def by_network(self, x, message):
        if " observes " in message:
            return False
        if found := SHOWN.fullmatch(message):
            self.cores.shown(self.end(found["end"]), found["offers"], found["plea"])
            return True
        words = message.split()
        first = self.end(" ".join(words[:3]))
        if words[3:] != ["invites"]:
            self.answered(first, words)
            return True
        if self.cores.told[f"{x} is gone"] == "yes":
            return False
        self.cores.invited(x, first)
        return True

    def answered(self, first, words):
        match words[3:]:
            case ["invites", *rest]:
                source = self.cores.handler_url(first.own)
                self.feed(self.end(" ".join(rest)), seen.PeerInvited(self.cores.url(first), source))
            case ["is", "accepted"]:
                self.feed(first, seen.InvitationAnswered(200))
            case ["is", "refused"]:
                self.feed(first, seen.InvitationAnswered(409))
            case ["is", "hidden", "from", *rest]:
                self.feed(self.end(" ".join(rest)), seen.ObserveRefused("404"))
            case ["is", "withdrawn", "for", *rest]:
                self.feed(self.end(" ".join(rest)), seen.PeerObjectDeleted())

    def deadline(self, end, trigger):
        if trigger == "closed":
            link = self.cores.told[end.var("link")]
            self.feed(end, seen.LinkLost(link, seen.Loss.BROKEN, "a ping is not answered"))
        else:
            self.cores.time_passes(end)
        return True

    def by_itself(self, what, step):
        cores, words = self.cores, what.split()
        if what.startswith("path of "):
            return self.path_set(self.end(what.removeprefix("path of ").removesuffix(" is set")))
        if what.startswith("object of "):
            end = self.end(" ".join(words[2:5]))
            self.feed(end, seen.ObjectCreated(cores.url(end)))
            return True
        if "registry" in words:
            cores.tick(words[0])
            return True
        return self.at_end(self.end(" ".join(words[:3])), " ".join(words[3:5]), step)

    def at_end(self, end, what, step):
        cores = self.cores
        match what:
            case "is deployed":
                cores.deploy(end)
            case "has its":
                number = negotiation_of(cores.told[end.var("offers")])
                here = (Candidate("tcp", "here", "00"),)
                self.feed(end, seen.CandidatesReady(here, number))
            case "waits no":
                cores.time_passes(end)
            case "does not":
                self.dial_fails(end, step)
            case "gives a":
                self.feed(end, seen.DialFailed(0))
            case _:
                return False
        return True

    def path_set(self, end):
        """The set-up goes on, or its path is removed again."""
        effects = self.cores.tables[end.own].path_set(self.cores.link(end), None, self.cores.now)
        is_deployed = any(type(effect).__name__ == "Deploy" for effect in effects)
        assert is_deployed == (self.cores.told[f"{end.own} entry of"] == end.name)
        return False

    def dial_fails(self, end, step):
        place = self.code.place[end.var("stale dial")]
        is_stale = self.state[place] != step[3][place]
        attempt = 0 if is_stale else self.cores.attempts[end.name]
        self.feed(end, seen.DialFailed(attempt))

    def wished(self, wish, step):
        if wish.endswith("asks for the other"):
            self.cores.plan(wish[0])
            return True
        if wish.endswith("goes"):
            x = wish[0]
            self.cores.registry(x, self.cores.tables[x].close())
            expected = {part: moves for part, moves in self.said(step)[0].items() if moves}
            assert expected == {k: v for k, v in self.cores.out.moves.items() if v}
            return False
        if wish == "an object is refused":
            moved = next(iter(self.said(step)[0]))
            self.feed(self.end(moved.replace("ctl", "hnd")), seen.ObjectRefused("403"))
            return True
        return self.faulty_dial(step)

    def faulty_dial(self, step):
        """A dial fails, perhaps because its link was cut before this end had proven it."""
        for end in self.cores.ends.values():
            names = (end.var("dial"), end.var("stale dial"))
            before, after = (
                [state[self.code.place[name]] for name in names] for state in (self.state, step[3])
            )
            values = self.code.values[self.code.place[names[0]]]
            if before != after and values[after[0]] != "opening":
                links = {k: v for k, v in self.said(step)[1].items() if k.startswith("link to")}
                for channel, sent in links.items():
                    self.cores.out.sends[channel] += sent
                self.dial_fails(end, step)
                return True
        return False
