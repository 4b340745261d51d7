"""Processes that are judged while they run: nothing early that is not true, and all of it once."""

import random
from collections import Counter

import attrs
import orjson

from fsm.frozen import pickle_state, restore
from fsm.judge.live import LiveJudge
from fsm.judge.process import judge_across
from fsm.judge.trace_line import read_line, wire_name
from fsm.judge.verdict import judge_processes
from tests.support.trace.trace_files import generated, records, session, whole

TRACES = 60
"""Mutated ones."""


def text_of(line):
    """What the process would have written."""
    there = {wire_name(name): value for name, value in attrs.asdict(line).items()}
    there = {name: value for name, value in there.items() if value is not None}
    return orjson.dumps(there | {"mono_ns": 0}) + b"\n"


class Watch:
    """Files that grow by chance, and who judges them; each round it is kept and made anew."""

    def __init__(self, lines, seed):
        self.dice = random.Random(seed)  # noqa: S311 - reproducible, not secret
        self.left = {}
        for line in lines:
            at = f"{line.run}/{line.node}/part-00000.jsonl"
            self.left[at] = self.left.get(at, b"") + text_of(line)
        self.judges = {at: LiveJudge() for at in self.left}
        self.rounds = []
        self.evidence = []

    def run(self):
        """Let all files grow to their ends; yield after each round."""
        while any(self.left.values()):
            for at, data in self.left.items():
                size = self.dice.choice((0, self.dice.randrange(len(data) + 2000)))
                self.left[at] = data[size:]
                judge = restore(pickle_state(self.judges[at]), LiveJudge)
                self.judges[at] = judge
                judge.take(at, data[:size])
                news = judge.round()
                self.rounds.append(news)
                self.evidence += news.evidence
            yield self

    @property
    def violations(self):
        return Counter(one for news in self.rounds for one in news.violations)

    @property
    def findings(self):
        return Counter(one for news in self.rounds for one in news.findings)

    @property
    def across(self):
        """What the evidence of all processes shows so far."""
        return list(judge_across(self.evidence, frozenset()))


def at_rest(lines):
    """What the reference says of each process by itself, once all is written."""
    return judge_processes(lambda: lines, is_sorted=True)


def assert_same(watch, processes):
    """All that the reference says was said, each thing once."""
    assert watch.violations == steps_broken(processes)
    assert watch.findings == Counter(found for one in processes for found in one.findings)
    assert Counter(watch.evidence) == Counter(item for one in processes for item in one.evidence)


def steps_broken(processes):
    entities = [entity for one in processes for entity in one.entities]
    return Counter(broken for entity in entities for broken in entity.violations)


def test_of_steps_by_chance_all_that_is_broken_is_reported_once():
    for number, story in enumerate(generated(TRACES, 11)):
        lines = [read_line(orjson.dumps(record)) for record in story]
        *_, watch = Watch(lines, number).run()
        assert_same(watch, at_rest(lines))


def only_round(*pieces):
    judge = LiveJudge()
    for piece in pieces:
        judge.take("part-00000.jsonl", piece)
    return judge.round()


def text(*facts):
    return b"".join(orjson.dumps(one) + b"\n" for one in records(facts))


def test_a_line_that_is_no_record_is_reported_with_its_place():
    lines = text(*whole(session("open", "closed"))).splitlines(keepends=True)

    news = only_round(lines[0], b'{"k":', b"1}\n", *lines[1:])

    assert [(one.file, one.line) for one in news.bad] == [("part-00000.jsonl", 2)]
    assert [one.records for one in news.processes] == [len(lines)]


def test_records_in_disorder_are_no_longer_judged_and_that_is_reported():
    lines = text(*whole(session("open", "closed"))).splitlines(keepends=True)

    (process,) = only_round(lines[0], lines[2], lines[1], *lines[3:]).processes

    assert process.unjudged == "its records are in disorder from number 2 on"
    assert process.records == len(lines)


def test_records_behind_the_end_are_reported():
    lines = text(*whole([])).splitlines(keepends=True)

    (process,) = only_round(*lines, lines[0]).processes

    assert process.unjudged == "it has records behind its end"
