"""A line is a record for columns if it is one for the reference decoder, with the same fields."""

import json
import random
from itertools import product

import pytest

from fsm.judge.trace_line import BadTraceLineError, read_line
from spark.files import part_of
from spark.workers import columns
from spark.workers.columns import UndecidedError, batches_of
from tests.support.calls_made import calls_of
from tests.support.cases import for_each
from tests.support.trace.trace_files import generated, records, session, whole, write_trace

CASES = 1500
FIRST, STEP, LAST = (json.dumps(one).encode() for one in records(whole(session("open"))))
MESSAGE = STEP.replace(b'"state"', b'"msg"').replace(b'"op"', b'"to": "[x]", "code": 2, "op"')
ESCAPED = STEP.replace(b"mn|ra", b"mn|\\u0041")
VALUES = [
    b"null", b"true", b"NaN", b"Infinity", b"-Infinity", b"-0", b"-0.0", b"0.0", b"01", b"+1",
    b"1.", b".5", b"1e", b"7", b"1e3", b"1E-3", b"1e999", b"1.7976931348623159e308", b"4.9e-325",
    b"0.30000000000000004", b"9223372036854775807", b"9223372036854775808",
    b"-9223372036854775808", b"18446744073709551616", b"1e18", b"9.3e18", b'""', b'"state"',
    b'"step"', b'"refused"', b'"msg"', b'"a\\"b"', b'"\\u0061"', b'"\\ud83d"', b'"{}"', b'"[x"',
    b'": [x"', b'"\xc3\xbc"', b'"\xed\xa0\xbd"', b'"\xff"', b'"\t"', b'"a" ', b"'a'", b"[1]",
    b"[]", b"{}", b'{"ln": 1}', b"1, 2", b'"a" "b"', b'"a", "ln": 3', b'"a", "x": 1', b"1 // so",
]  # fmt: skip
TOKENS = [
    b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b" ", b"\t", b"\r", b"\n", b"\x00", b"\x7f",
    b"\x85", b"\xef\xbb\xbf", b"-", b"0", b"1", b"e", b"{}", b"}\n{", b'"a": 1,',
]  # fmt: skip
NAMES = [
    b"ln", b"t", b"wall_ns", b"k", b"op", b"machine", b"key", b"old", b"cause", b"code", b"run",
    b"why", b"x",
]  # fmt: skip


def odd(line, dice):
    """A line with one change, which may be no record any more."""
    how = dice.randrange(5)
    if how == 0:
        at = dice.randrange(len(line) + 1)
        return line[:at] + dice.choice(TOKENS) + line[at + dice.randrange(3) :]
    name, value = dice.choice(NAMES), dice.choice(VALUES)
    if how == 1:
        return line[:-1] + b', "%b": %b}' % (name, value)
    if how == 2:
        return line.replace(b'"%b"' % name, b'"%b"' % dice.choice(NAMES))
    told = json.loads(line)
    if name.decode() not in told:
        return line
    del told[name.decode()]
    rest = json.dumps(told).encode()
    return rest if how == 3 else b'{"%b": %b, ' % (name, value) + rest[1:]


def expected(lines):
    """What the reference says of all lines; None: some are no records, or of other processes."""
    try:
        told = [read_line(line) for line in lines]
    except BadTraceLineError:
        return None
    if len({(one.run, one.node) for one in told}) > 1:
        return None
    return [
        repr([one.run, one.node, *(getattr(one, name) for name in columns._COLUMNS)])
        for one in told
    ]


def by_columns(lines, reader):
    try:
        run, node, batch = reader.batch(b"\n".join(lines))
    except UndecidedError:
        return None
    return [
        repr([run, node, *(row[name] for name in columns._COLUMNS)]) for row in batch.to_pylist()
    ]


def fresh_reader():
    """One that knows the fields of these lines, so that Arrow reads them if they are plain."""
    lines = columns._Lines()
    lines.batch(b"\n".join([FIRST, STEP, MESSAGE]))
    return lines


@pytest.fixture
def reader():
    return fresh_reader()


def test_each_changed_line_is_read_as_the_reference_reads_it(reader):
    dice = random.Random(3)  # noqa: S311 - reproducible, not secret
    decided = 0
    for _ in range(CASES):
        changed = odd(dice.choice([STEP, MESSAGE]), dice)
        text = b"\n".join(dice.choice([[FIRST, changed], [changed, STEP], [FIRST, changed, STEP]]))
        lines = text.removesuffix(b"\n").split(b"\n")
        told = by_columns([text], reader)
        assert told == expected(lines), text
        decided += told is not None
    assert CASES * 0.2 < decided < CASES * 0.8


@for_each(product([b"ln", b"t", b"k", b"op", b"old", b"x"], VALUES))
def test_each_value_of_a_field_is_read_as_the_reference_reads_it(name, value):
    told = json.loads(STEP)
    told.pop(name.decode(), None)
    line = b'{"%b": %b, ' % (name, value) + json.dumps(told).encode()[1:]
    assert by_columns([FIRST, line, LAST], fresh_reader()) == expected([FIRST, line, LAST])


HEAD, TAIL = STEP[:40], STEP[40:]


@pytest.mark.parametrize(
    "lines",
    [[STEP + STEP], [STEP + b" " + STEP], [STEP + b"," + STEP], [STEP, b""], [STEP, b" "],
     [HEAD.split(b", ")[0] + b",", TAIL], [b" " + STEP], [STEP + b" "], [STEP + b"]"],
     [STEP.replace(b", ", b",\n", 1).split(b"\n")[0], STEP.split(b", ", 1)[1] + STEP],
     [b"{", STEP[1:]], [STEP[:-1], b"}"], [STEP[:-1], b"}" + STEP], [b"[", STEP, b"]"]],
)  # fmt: skip
def test_objects_that_are_no_lines_are_read_as_the_reference_reads_them(reader, lines):
    for before in ([FIRST], [FIRST, ESCAPED]):
        told = [*before, *lines, LAST]
        assert by_columns(told, reader) == expected(told)


def test_lists_that_are_too_deep_for_a_stack_are_no_record(reader):
    line = STEP[:-1] + b', "x": ' + b"[" * 3_000_000 + b"}"
    assert by_columns([FIRST, line], reader) is None


def test_only_lines_that_are_not_plain_are_decoded_one_by_one(reader):
    with calls_of(columns._objects) as decoded:
        assert by_columns([FIRST, STEP, ESCAPED, MESSAGE, LAST], reader) is not None
    assert decoded == [{"lines": [ESCAPED]}]


def test_after_the_first_block_traces_as_processes_write_them_are_not_decoded_again(tmp_path):
    lines = [one for number in range(40) for one in generated(1, seed=2 * number)[0]]
    lines = [one | {"run": "r", "node": "\xfc"} for one in lines]
    texts = [json.dumps(one, ensure_ascii=False) for one in lines]
    part = part_of(str(write_trace(tmp_path, texts)))
    with calls_of(columns._objects) as blocks:
        batches = [*batches_of(part, size=4000)]
    assert sum(len(batch) for *_, batch in batches) == len(lines)
    assert 0 < len(blocks) < 4 < len(batches)
