"""The children of one object at the reporter's end and in copies, with what is under way."""

from collections import deque

from fsm.sync.child_history import ChildHistory
from fsm.sync.children import ChildOp, ChildrenCopyCore
from specs.bodies.object import ChildrenEnded
from specs.child import child_name
from specs.message import MessageType

RARELY = 100
"""Rounds in which everything must have come to rest."""


class ChildrenPort:
    """Notes what a copy of children asks, which is not called back meanwhile.

    Attributes:
        done: Children that are new, with value and version, or gone; and calls with arguments.
    """

    def __init__(self):
        self.done, self.copy = [], None

    def changed(self, name):
        kept = self.copy.children.find(name)
        news = ("gone", name) if kept is None else ("shown", name, kept.value, kept.version)
        self.done.append(news)

    def read(self, number):
        self.done.append(("read", number))

    def say_again(self, act, name):
        kept = self.copy.children.find(name)
        self.done.append(("say_again", act, name, None if kept is None else kept.value))


def lone_children(keeper):
    """Make a copy with a port that notes; `told_children` uses it."""
    port = ChildrenPort()
    copy = port.copy = ChildrenCopyCore(keeper, port)
    copy.port = port
    return copy


def told_children(copy, name, *arguments, **terms):
    """Call a copy by name, with arguments; return what it asked."""
    copy.port.done = done = []
    getattr(copy, name)(*arguments, **terms)
    return done


class ChildrenWorld:
    """One keeper, and copies that each have a way to and from it and to each other.

    A new child is acknowledged by the keeper; everything else is said once, and may be
    lost, doubled or overtaken by what others say. Copies behind a link have a way to and from
    the keeper only, which reports to them, and of them, what counts.
    """

    def __init__(self, names, linked=(), window=None):
        self.now = 0.0
        self.linked = frozenset(linked)
        self.history = ChildHistory(window)
        self.keeper = self.history.children
        self.had_any = False
        self.left = set()
        self.copies = {name: lone_children(name) for name in names}
        self.known = {name: set() for name in names}
        self.shown = {name: {} for name in names}
        self.reads = []
        apart = [one for one in names if one not in self.linked]
        pairs = [(one, to) for one in apart for to in apart if one != to]
        ends = [pair for one in names for pair in ((one, None), (None, one))]
        self.ways = {pair: deque() for pair in (*pairs, *ends)}
        self.last_id = 0
        for name in names:
            self.copies[name].children.window = window
            self.feed(name, "become", self.history.snapshot())

    def feed(self, name, what, *arguments, **terms):
        for effect in told_children(self.copies[name], what, *arguments, self.now, **terms):
            match effect:
                case ("shown", child, value, _):
                    self.shown[name][child] = value
                    self.known[name].add(child)
                case ("gone", child):
                    del self.shown[name][child]
                case ("read", read):
                    self.reads.append((name, read))
                case ("say_again", act, child, value):
                    self.say(name, act, child, value)

    def _op(self, name, act, child, value):
        self.last_id += 1
        number = self.last_id if child is None else int(child.rpartition("#")[2])
        return ChildOp(act, child or child_name(name, number), name, number, self.last_id, value)

    def create(self, name, value, *, is_lost=False, is_unheard=False):
        """A new child: the keeper's word decides; its answer may be lost."""
        op = self._op(name, MessageType.CREATE, None, value)
        self._send(name, op, but_keeper=True)
        if not is_lost and self._keep(op) is True and not is_unheard:
            self.feed(name, "take", op)

    def say(self, name, act, child, value=None):
        op = self._op(name, act, child, value)
        self.feed(name, "take", op)
        self._send(name, op)

    def _keep(self, op):
        taken = self.history.take(op, self.now)
        if taken is True:
            self.had_any = True
            self.left.update(self.history.trim(self.now))
            for name in self.copies:
                if name in self.linked or op.creator in self.linked:
                    self.ways[None, name].append(op)
        return taken

    def _send(self, name, op, *, but_keeper=False):
        for (one, to), way in self.ways.items():
            if one == name and not (but_keeper and to is None):
                way.append(op)

    def deliver(self, one, to, times=1):
        op = self.ways[one, to].popleft()
        for _ in range(times):
            if to is None:
                self._keep(op)
            elif one is None:
                self.feed(to, "take", op, is_reported=True)
            else:
                self.feed(to, "take", op)

    def read(self, *, is_lost=False):
        name, number = self.reads.pop(0)
        if is_lost:
            self.feed(name, "read_failed", number)
        else:
            self.feed(name, "become", self.history.snapshot())

    def end(self, child):
        """The reporter deletes a child of anyone, and one copy at most hears it at once."""
        self.history.end(child, self.now)

    def tell_sign(self, to):
        """The keeper states nothing of children that it never had."""
        if self.had_any:
            report = self.history.report()
            is_ended = isinstance(report, ChildrenEnded)
            self.feed(to, "take_ended" if is_ended else "hear_sign", report)

    def wait(self, seconds):
        self.now += seconds
        self.left.update(self.history.trim(self.now))
        for name in self.copies:
            self.feed(name, "time_over")

    def rest(self):
        """Let nothing be lost any more, until nothing happens; return whether it did."""
        for _ in range(RARELY):
            for one, to in self.ways:
                while self.ways[one, to]:
                    self.deliver(one, to)
            while self.reads:
                self.read()
            signs = [copy.children.sign for copy in self.copies.values()]
            if not any(self.ways.values()) and signs == [self.keeper.sign] * len(signs):
                return True
            for name in self.copies:
                self.tell_sign(name)
            self.wait(60.0)
        return False
