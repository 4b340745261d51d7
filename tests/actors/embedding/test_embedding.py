"""A node and runtimes inside a program: what `actors` itself offers."""

import ast
import re
import subprocess
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio

import actors
from actors.node.config import NOWHERE, Endpoint, ForeignPlan, NodeConfig
from actors.runtime.config import RuntimeConfig
from specs.errors import BadUrlError
from tests.support.log import captured_log
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork


class Greeter(actors.Hyperty):
    async def on_request(self, message):
        if message.body["value"] == "crash":
            self.spawn(self.fall)
            await trio.sleep_forever()
        return f"Hello, {message.body['value']}!"

    async def fall(self):
        raise RuntimeError


class Caller(actors.Hyperty):
    """Asks only."""


@asynccontextmanager
async def place(network=None):
    network = network or MemoryNetwork()
    async with (
        actors.open_node("a.example", network=network) as node,
        actors.open_runtime("a.example", "alice", node=node.url, network=network) as here,
        actors.open_runtime("a.example", "bob", node=node.url, network=network) as there,
    ):
        yield here, there


async def test_evidence_goes_to_a_tracer_or_a_directory(tmp_path):
    tracer = MemoryTracer()
    async with actors.open_node("a.example", trace=tracer) as node:
        runtime = actors.open_runtime("a.example", "ra", node=node.url, trace=tmp_path)
        async with runtime as ra:
            await ra.deploy(Greeter)
    assert [path.name for path in tmp_path.glob("run=*/*")] == ["node=ra"]
    assert any(fact.machine == "session" for fact in tracer.facts)


# --- the names ------------------------------------------------------------------------------


def test_every_public_name_is_there_and_comes_from_where_it_is_defined():
    for name in actors.__all__:
        assert getattr(actors, name) is not None
    assert {*actors.__all__} <= {*dir(actors)}


def test_the_settings_of_a_runtime_have_public_types():
    """So that a program imports nothing else to set them."""
    read_from_files = {"policy", "trust"}
    types = " ".join(
        str(field.type)
        for field in attrs.fields(RuntimeConfig)
        if field.name not in {*read_from_files, "ids"}
    )
    ours = set(re.findall(r"\b(?:actors|fsm|specs|transports)\.[\w.]*?(\w+)\b(?!\.)", types))
    ours |= set(re.findall(r"<(?:class|enum) '(?:[\w.]+\.)?([A-Z]\w+)'", types))
    assert {"HttpConfig", "LinkPolicy", "Topology"} <= ours
    assert ours <= {*actors.__all__}


def test_type_checkers_see_the_names_that_there_are():
    source = ast.parse(Path(actors.__file__).read_text())
    checked, _ = [node for node in source.body if isinstance(node, ast.If)]
    seen = {(line.module, name.name) for line in checked.body for name in line.names}
    places = {(place, name) for place, names in actors._PLACES.items() for name in names}
    assert seen == places
    assert sorted(name for _, name in places) == actors.__all__


def test_a_program_with_a_runtime_alone_loads_no_part_of_the_node():
    program = "import sys, actors; actors.open_runtime; print(*sys.modules)"
    done = subprocess.run(  # noqa: S603 - the program is ours
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "actors.runtime.app" in loaded
    assert not [name for name in loaded if name.startswith("actors.node")]
    assert not {"asyncio", "structlog"} & set(loaded)


def test_the_import_itself_brings_nothing_with_it():
    program = "import sys, actors; print(*sys.modules)"
    done = subprocess.run(  # noqa: S603 - the program is ours
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not {"trio", "attrs", "specs"} & set(done.stdout.split())


# ---- what somebody gets wrong


@pytest.mark.parametrize("domain", ["a b", "", "a.example/x"])
async def test_a_node_of_no_domain_is_refused(domain):
    with pytest.raises(BadUrlError, match=r"it is no domain name such as a\.example"):
        async with actors.open_node(domain):
            pytest.fail("it opened")


@pytest.mark.parametrize(
    ("domain", "name", "node", "said"),
    [
        ("a b", "ra", "ws://127.0.0.1:1/link", "no domain name such as a.example"),
        ("a.example", "r/a", "ws://127.0.0.1:1/link", "no name of a runtime such as alice"),
        ("a.example", "ra", "http://127.0.0.1/link", "it is no URL such as ws://host:port/path"),
    ],
)
async def test_an_unreachable_runtime_is_refused(domain, name, node, said):
    with pytest.raises(BadUrlError, match=said):
        async with actors.open_runtime(domain, name, node=node):
            pytest.fail("it opened")


@pytest.mark.parametrize(("given", "missing"), [({"name": "ra"}, "node"), ({"node": "x"}, "name")])
def test_what_a_runtime_needs_is_named(given, missing):
    with pytest.raises(TypeError, match=f"open_runtime: {missing} is missing"):
        actors.open_runtime("a.example", **given)


def plain_node(url, **more):
    foreign = ForeignPlan({"b.example": Endpoint(url)}, NOWHERE.spawn)
    return NodeConfig(domain="a.example", foreign=foreign, **more)


ELSEWHERE = "ws://192.0.2.1:8440/link"
HERE = "ws://127.0.0.1:1/link"
of = partial(RuntimeConfig, domain="a.example", name="ra")
PLAIN = [
    (actors.open_runtime, partial(of, node=ELSEWHERE)),
    (actors.open_runtime, partial(of, node=HERE, nodes={"b.example": ELSEWHERE})),
    (actors.open_node, partial(plain_node, ELSEWHERE)),
]


@pytest.mark.parametrize(("opens", "config"), PLAIN)
async def test_what_is_dialled_without_tls_all_the_same_is_logged(opens, config):
    """SEC-13."""
    with captured_log() as log:
        async with opens(config(insecure=True)):
            pass

    said = [one for one in log if "without TLS" in one["event"]]
    assert [one["url"] for one in said] == [ELSEWHERE]


async def test_an_invalid_address_is_answered_400(autojump_clock):
    async with place() as (here, _):
        caller = await here.deploy(Caller)
        answer = await caller.request("nonsense", 1)
        assert answer.code == actors.Code.MALFORMED
        assert "'nonsense' is no address" in answer.body["description"]
