"""Whatever happens to writes, answers and watches: the mirror is as the engine, in the end."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from fsm.group.kinds import OwnerRow, owner_key
from fsm.group.row_form import write_row
from fsm.group.rows import RowsCore, RowsPort
from specs.limits.group import GROUP_RETRY
from tests.fsm.group.group_engine import GroupEngine, tell
from tests.support.chance import examples
from tests.support.link_calls import Told

ADDRESSES = st.sampled_from(["h1", "h2", "h3"])


class MirrorOfAnEngine(RuleBasedStateMachine):
    """One node and its engine; other nodes write, too, and all answers and watches may be lost."""

    def __init__(self):
        super().__init__()
        self.engine, self.core = GroupEngine(), Told(RowsPort, RowsCore)
        self.now = 0.0
        self.table = {}
        self.wanted, self.ended, self.last = {}, set(), {}
        self.requests, self.late, self.answers = [], [], []
        self.told = 0
        self.snapshot = None

    # ---- the host

    def tell(self, call):
        for effect in self.core.tell(call, self.now):
            match effect.name:
                case "apply":
                    self.table[effect.row.key] = effect.row
                case "withdraw":
                    assert effect.is_lost or effect.row.key in self.table
                    self.table.pop(effect.row.key, None)
                case "lose":
                    self.end(effect.tickets)
                case "confirm":
                    self.end(effect.tickets)
                    log = self.engine.log
                    written = {None} | {news.value for news in log if news.key == effect.key}
                    assert self.wanted[max(effect.tickets)] in written
                case "read":
                    row = self.engine.rows.get(effect.key, (None, effect.revision))
                    self.answers.append(tell.take_row(effect.key, *row, is_read=True))

    def end(self, tickets):
        assert self.ended.isdisjoint(tickets)
        self.ended |= set(tickets)

    def decide(self, address, row):
        ticket = len(self.wanted) + 1
        self.wanted[ticket] = None if row is None else write_row(row)
        key = owner_key(address)
        self.table.pop(key, None)
        if row is not None:
            self.table[key] = row
        self.tell(tell.change(key, row, ticket))

    @rule(address=ADDRESSES)
    def change(self, address):
        self.decide(address, OwnerRow(address, f"mine {len(self.wanted)}"))

    @rule(address=ADDRESSES)
    def remove(self, address):
        if self.table.get(owner_key(address)):
            self.decide(address, None)

    @rule()
    def send(self):
        self.requests += self.core.writes(self.now)

    @rule()
    def time_passes(self):
        self.now += GROUP_RETRY

    # ---- the engine

    @rule(address=ADDRESSES, is_gone=st.booleans())
    def another_writes(self, address, is_gone):
        row = OwnerRow(address, f"other {len(self.engine.log)}")
        self.engine.write(owner_key(address), None if is_gone else write_row(row))

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def make(self, data):
        at = data.draw(st.integers(0, len(self.requests) - 1))
        self.answers.append(self.engine.make(self.requests.pop(at)))

    @precondition(lambda self: self.requests)
    @rule(is_made=st.sampled_from(["never", "already", "late"]))
    def no_answer(self, is_made):
        put = self.requests.pop(0)
        if is_made == "already":
            self.engine.make(put)
        elif is_made == "late":
            self.late.append(put)
        self.answers.append(tell.take_silence(put.number))

    @precondition(lambda self: self.late)
    @rule()
    def a_late_request_comes(self):
        self.engine.make(self.late.pop(0))

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def answer(self, data):
        at = data.draw(st.integers(0, len(self.answers) - 1))
        self.tell(self.answers.pop(at))

    # ---- the watch

    @precondition(lambda self: self.snapshot is None)
    @rule(count=st.integers(1, 4))
    def watch(self, count):
        for news in self.engine.log[self.told : self.told + count]:
            self.tell(news)
            self.told += 1

    @precondition(lambda self: self.snapshot is None)
    @rule()
    def an_outage_is_mended_by_the_watch(self):
        """Of each row that has changed the last version comes."""
        newest = {news.key: news for news in self.engine.log[self.told :]}
        for news in sorted(newest.values(), key=lambda one: one.revision):
            self.tell(news)
        self.told = len(self.engine.log)
        self.tell(tell.end_list(""))

    @precondition(lambda self: self.snapshot is None)
    @rule()
    def a_watch_begins(self):
        self.tell(tell.begin_watch(""))
        self.snapshot = []

    @precondition(lambda self: self.snapshot is not None)
    @rule(is_read=st.booleans())
    def it_becomes_current(self, is_read):
        if is_read or not self.snapshot:
            self.snapshot = self.engine.snapshot()
            self.told = len(self.engine.log)
        if not is_read:
            for news in self.snapshot:
                self.tell(news)
            self.tell(tell.end_list(""))
            self.snapshot = None

    # ---- in the end

    def teardown(self):
        if self.snapshot is not None:
            self.it_becomes_current(is_read=False)
        for put in self.late:
            self.engine.make(put)
        for _ in range(20):
            self.watch(len(self.engine.log))
            for one in self.answers:
                self.tell(one)
            self.answers.clear()
            self.now += GROUP_RETRY
            self.send()
            self.answers += [self.engine.make(put) for put in self.requests]
            self.requests.clear()
        assert self.core.is_settled
        assert {key: write_row(row) for key, row in self.core.rows.items()} == {
            key: value for key, (value, _) in self.engine.rows.items()
        }
        assert self.table == self.core.rows
        assert self.ended == set(self.wanted)


TestMirror = MirrorOfAnEngine.TestCase
TestMirror.settings = settings(max_examples=examples(80), stateful_step_count=40, deadline=None)
