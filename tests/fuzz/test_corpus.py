"""RELIABILITY F5: frames that found something once are shot again at every change.

A line of a file in `corpus` is what one link sent: the wire form, whether it had a session,
and its frames in base64, as they were on the wire.
"""

import base64
import itertools
import json
from pathlib import Path

import pytest
import trio

from tests.support.node.node_process import DOMAIN, UNHURRIED, node_process
from tests.support.wire.wire_peer import FORMS
from tests.support.wire.wire_socket import Left

CASES = [
    pytest.param(json.loads(line), id=f"{path.stem}-{number}")
    for path in sorted((Path(__file__).parent / "corpus").glob("*.jsonl"))
    for number, line in enumerate(path.read_text().splitlines())
]

NUMBERS = itertools.count()
"""Each case has runtimes of its own: the links of the case before may not be over yet."""


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    log = tmp_path_factory.mktemp("corpus") / "log"
    with node_process(log, "--domain", DOMAIN, "--allow-legacy", *UNHURRIED) as running:
        yield running
        assert running.complaints == []
        assert running.stop() == 0


@pytest.mark.parametrize("case", CASES)
async def test_former_findings_of_the_fuzzer_affect_no_other_message(node, case):
    """F5: the node answers another peer afterwards, and says nothing unusual in its log."""
    number = next(NUMBERS)
    sender = FORMS[case["form"]](node.urls, DOMAIN, f"sender-{number}")
    await sender.connect()
    if case["session"]:
        await sender.open()
    try:
        for frame in case["frames"]:
            await sender.wire.send_bytes(base64.b64decode(frame))
        with trio.move_on_after(0.2):
            await sender.farewell()
    except (Left, trio.BrokenResourceError):
        pass
    finally:
        await sender.vanish()
    other = FORMS["plain"](node.urls, DOMAIN, f"other-{number}")
    await other.connect()
    await other.open()
    assert await other.allocate()
    await other.vanish()
