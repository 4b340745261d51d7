"""All places of the browser runtime that answer 503: "not now" (MSG-17, R11).

Each says why, and after how many seconds another attempt may succeed: `replyTo` adds both to every
answer 503 that lacks them. A refusal that another attempt does not change has another code. A new
place needs a row in `ANSWERS` that says why another attempt can help.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.web.npm import needs_node
from tests.web.test_cores import node_test

SOURCES = Path(__file__).parents[2] / "web" / "src"

ANSWERS = {
    "bus.js::#deliver": "the receiver reads its mailbox",
    "bus.js::constructor": "the runtime has opened its way out",
    "bus.js::#admit": "open requests to the receiver end",
    "bus.js::#rejectLate": "with a new id it is in order",
    "bus.js::#giveChild": "another path is set up",
    "bus.js::#giveHere": "the receiver reads its mailbox",
    "bus.js::#goBy": "another stub is deployed",
    "bus.js::handOn": "the receiver reads its mailbox",
    "p2p/changes.js::timeOver": "the link becomes live at this end, too",
    "p2p/stub.js::#write": "the link sends what waits",
    "p2p/stub.js::#use": "earlier messages arrive",
    "p2p/stub.js::invited": "other links end, or time passes",
    "registry.js::#resolve": "the pause ends",
    "sandbox.js::#end": "the hyperty is deployed again",
    "session.js::refuseUnrenewed": "the node has everything back",
    "session.js::overflow": "the stub sends what waits",
    "session.js::refuseAll": "the node can be reached again",
    "session.js::send": "another stub is deployed, or the pause ends",
    "session.js::loseLink": "the node can be reached again",
    "session.js::#fail": "another stub is deployed",
    "sync/reporter.js::subscribe": "observers leave",
}
"""Why another attempt can help."""

OTHERS = {
    "registry.js::#claimed": "waits and tries again",
    "bus.js::lost": "gives 503 its pause",
    "message.js::replyTo": "gives 503 its reason and its pause",
    "node.js::#ask": "a session's answer that the stub gives itself: no token can be had now",
    "objects.js::-": "codes after which an observer goes on",
    "objects.js::create": "waits and tries again",
    "sync/observed.js::-": "codes after which an observer tries again",
    "sync/observed.js::#letGo": "waits and tries again",
}
"""Places that read the code, or give 503 what it must have."""

TWICE = {"objects.js::-", "session.js::#fail", "session.js::send", "sync/observed.js::-"}
"""Places that do so twice."""

LASTING = r"MALFORMED|UNAUTHENTICATED|FORBIDDEN|NOT_FOUND|GONE|TOO_LARGE|CONFLICT|INTERNAL"
"""Codes of refusals that another attempt does not change."""

HEAD = re.compile(
    r"^(?:  (?:static )?(?:async )?(?P<method>#?\w+)\(.*\) \{"
    r"|(?:export )?(?:async )?(?:function |const )(?P<function>\w+).*(?:=>|\{))$"
)
UNAVAILABLE = re.compile(r"\bUNAVAILABLE\b(?! \} = CODES)|(?<![\w.])503(?!\w)")
ANSWER = re.compile(r"""type: ["']response["']""")
FALSE_HOPE = re.compile(rf"""CODES\.(?:{LASTING}),\s*["'`][^"'`]*\b(?:again|later)\b""")


def read():
    for path in sorted(SOURCES.rglob("*.js")):
        if path.name not in ("constants.js", "machines.js"):
            yield path.relative_to(SOURCES).as_posix(), path.read_text()


def places(text, wanted):
    """The functions and methods with lines that match, each once for each match."""
    within, end = "-", ""
    for line in text.splitlines():
        if head := HEAD.match(line):
            within, end = head["method"] or head["function"], "  }" if head["method"] else "}"
        elif line.removesuffix(";") == end:
            within, end = "-", ""
        if not line.lstrip().startswith(("*", "/*", "//")):
            yield from (within for _ in wanted.finditer(line))


def found(wanted):
    return Counter(f"{name}::{place}" for name, text in read() for place in places(text, wanted))


def test_every_place_that_answers_503_is_listed_with_a_reason_to_try_again():
    rows = Counter([*ANSWERS, *OTHERS, *TWICE])
    there = found(UNAVAILABLE)
    assert (there - rows, rows - there) == (Counter(), Counter())


def test_all_answers_are_written_where_503_gets_its_reason_and_its_pause():
    """One that is written elsewhere would have neither."""
    assert found(ANSWER) == {"message.js::replyTo": 1, "message.js::malformedAnswer": 1}


def test_no_lasting_refusal_asks_for_another_attempt():
    assert [name for name, text in read() if FALSE_HOPE.search(text)] == []


@pytest.mark.parametrize(
    "text", ['refuse(m, CODES.NOT_FOUND, "try again")', "[CODES.GONE,\n `${n} wait; ask later`]"]
)
def test_a_lasting_refusal_that_asks_for_another_attempt_is_seen(text):
    assert FALSE_HOPE.search(text)


@needs_node
def test_every_answer_503_says_why_and_after_how_long():
    node_test("unavailable.test.js")
