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
from transports.link import Kind
from transports.memory import MemoryNetwork
from transports.system import open_system_network


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


DESCRIPTOR = "hyperty-catalogue://catalogue.a.example/.well-known/hyperty/Greeter"


@asynccontextmanager
async def place(network=None):
    network = network or MemoryNetwork()
    async with (
        actors.open_node("a.example", network=network) as node,
        actors.open_runtime("a.example", "alice", node=node.url, network=network) as here,
        actors.open_runtime("a.example", "bob", node=node.url, network=network) as there,
    ):
        yield here, there


async def test_the_handle_of_a_hyperty_requests_in_its_name(autojump_clock):
    async with place() as (here, there):
        greeter, caller = await there.deploy(Greeter), await here.deploy(Caller)
        answer = await caller.request(greeter.url, "Alice")
        assert (answer.code, answer.body["value"]) == (200, "Hello, Alice!")
        assert answer.to == caller.url


async def test_the_handle_outlives_a_crash_of_the_hyperty(autojump_clock):
    async with place() as (here, there):
        greeter, caller = await there.deploy(Greeter), await here.deploy(Caller)
        assert (await caller.request(greeter.url, "crash")).code == 503
        assert (await greeter.request(greeter.url, "me")).body["value"] == "Hello, me!"
        assert (await caller.request(greeter.url, "Alice")).code == 200


async def test_leaving_the_block_of_a_hyperty_undeploys_it(autojump_clock):
    async with place() as (here, there):
        caller = await here.deploy(Caller)
        async with await there.deploy(Greeter) as greeter:
            assert (await caller.request(greeter.url, "Alice")).code == 200
        assert (await caller.request(greeter.url, "Alice")).code == 404
        assert (await greeter.request(caller.url)).code == 410


async def test_a_block_that_is_cancelled_undeploys_all_the_same(autojump_clock):
    async with place() as (here, there):
        caller = await here.deploy(Caller)
        with trio.CancelScope() as scope:
            async with await there.deploy(Greeter) as greeter:
                scope.cancel()
                await trio.sleep_forever()
        assert (await caller.request(greeter.url, "Alice")).code == 404


@pytest.mark.parametrize(
    ("made", "given", "name"),
    [
        pytest.param(Greeter, None, "Greeter", id="its class"),
        pytest.param(lambda: Greeter(), None, "hyperty", id="no class"),  # noqa: PLW0108
        pytest.param(Greeter, "gr", "gr", id="a name"),
    ],
)
async def test_a_hyperty_is_registered_under_a_name(made, given, name, autojump_clock):
    async with place() as (here, there):
        greeter, caller = await there.deploy(made, given), await here.deploy(Caller)
        (found,) = await caller.discover(name=name)
        assert found.url == greeter.url


async def test_a_hyperty_is_registered_with_what_it_offers(autojump_clock):
    async with place() as (here, there):
        offers = {"resources": ["chat"], "schemas": ["comm"], "descriptor": DESCRIPTOR}
        greeter = await there.deploy(Greeter, name="gr", **offers)
        caller = await here.deploy(Caller)
        wanted = actors.FoundEntry(
            url=greeter.url,
            status="live",
            runtime=there.url,
            name="gr",
            resources=("chat",),
            schemas=("comm",),
            descriptor=DESCRIPTOR,
        )
        for by in (caller, here):
            assert await by.discover(resources=["chat"], schema="comm") == (wanted,)
            assert await by.discover(name="gr", resources=["video"]) == ()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"name": 7}, TypeError),
        ({"name": ""}, ValueError),
        ({"resources": "chat"}, TypeError),
        ({"schemas": [7]}, TypeError),
    ],
)
async def test_a_wrong_kind_of_argument_is_an_error_at_once(wrong, error, autojump_clock):
    async with place() as (here, _):
        with pytest.raises(error):
            await here.deploy(Greeter, **wrong)


async def test_a_runtime_without_its_node_says_503(autojump_clock):
    gone = "ws://127.0.0.1:1/link"
    network = MemoryNetwork()
    async with actors.open_runtime("a.example", "ra", node=gone, network=network) as runtime:
        with pytest.raises(actors.AllocationError) as refused:
            await runtime.deploy(Greeter)
        assert refused.value.code == 503
        with pytest.raises(actors.SessionError):
            await runtime.enter()


class Quiet(actors.Interceptor):
    """Lets nobody shout."""

    directions = frozenset({actors.Direction.OUTGOING})

    def intercept(self, message, by):
        loud = str(message.body.get("value")).isupper()
        return actors.Objection("not so loud") if loud else message


async def test_an_application_has_stages_of_its_own_and_sees_what_was_dropped(autojump_clock):
    """BUS-11, OBS-06."""
    network = MemoryNetwork()
    async with actors.open_node("a.example", network=network) as node:
        config = RuntimeConfig(
            domain="a.example", name="ra", node=node.url, interceptors=(Quiet(),)
        )
        async with actors.open_runtime(config, network=network) as runtime:
            caller, greeter = await runtime.deploy(Caller), await runtime.deploy(Greeter)
            assert (await caller.request(greeter.url, "alice")).code == 200
            refused = await caller.request(greeter.url, "ALICE")
            assert (refused.code, refused.body["description"]) == (403, "not so loud")
            (drop,) = runtime.drops().last
            assert (drop.reason, drop.to) == (actors.DropReason.DENIED, greeter.url)


async def test_an_error_in_the_block_comes_out_as_itself(autojump_clock):
    with pytest.raises(ZeroDivisionError):
        async with place():
            _ = 1 / 0


async def test_whole_configurations_are_taken_as_they_are(autojump_clock):
    network, kinds = MemoryNetwork(), (Kind.TCP,)
    async with actors.open_node(NodeConfig(domain="a.example"), network=network) as node:
        alice, bob = (
            RuntimeConfig(domain="a.example", name=name, node=node.url, kinds=kinds)
            for name in ("alice", "bob")
        )
        async with (
            actors.open_runtime(alice, network=network) as here,
            actors.open_runtime(bob, network=network) as there,
        ):
            greeter, caller = await there.deploy(Greeter), await here.deploy(Caller)
            await caller.request(greeter.url, "Alice")
            await trio.sleep(1)
            (link,) = await here.links()
            assert (link.remote, link.status.value) == (there.url, "live")
            assert here.monitor_violations == there.monitor_violations == 0


async def test_evidence_goes_to_a_tracer_or_a_directory(tmp_path):
    tracer = MemoryTracer()
    async with actors.open_node("a.example", trace=tracer) as node:
        runtime = actors.open_runtime("a.example", "ra", node=node.url, trace=tmp_path)
        async with runtime as ra:
            await ra.deploy(Greeter)
    assert [path.name for path in tmp_path.glob("run=*/*")] == ["node=ra"]
    assert any(fact.machine == "session" for fact in tracer.facts)


async def test_on_real_sockets_no_id_comes_twice_after_a_restart():
    async with actors.open_node("a.example") as node:
        first = await echo_id(node)
        assert await echo_id(node) > first > 10**15


async def echo_id(node):
    async with actors.open_runtime("a.example", "ra", node=node.url) as runtime:
        caller = await runtime.deploy(Caller)
        return (await caller.request(caller.url)).id


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


def test_another_name_is_an_error_like_any():
    with pytest.raises(AttributeError, match="no attribute 'open_door'"):
        _ = actors.open_door


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
        ("a.example", "", "ws://127.0.0.1:1/link", "no name of a runtime such as alice"),
        ("a.example", "ra", "", "it is no URL such as ws://host:port/path"),
        ("a.example", "ra", "http://127.0.0.1/link", "it is no URL such as ws://host:port/path"),
    ],
)
async def test_an_unreachable_runtime_is_refused(domain, name, node, said):
    with pytest.raises(BadUrlError, match=said):
        async with actors.open_runtime(domain, name, node=node):
            pytest.fail("it opened")


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
async def test_a_node_elsewhere_is_not_dialled_without_tls(opens, config):
    """SEC-13."""
    with pytest.raises(ValueError, match=rf"{ELSEWHERE} .* insecure=True"):
        async with opens(config()):
            pytest.fail("it opened")
    async with open_system_network() as network:
        with pytest.raises(ValueError, match="insecure=True"):
            async with opens(config(), network=network):
                pytest.fail("it opened")


@pytest.mark.parametrize(("opens", "config"), PLAIN)
async def test_what_is_dialled_without_tls_all_the_same_is_logged(opens, config):
    """SEC-13."""
    with captured_log() as log:
        async with opens(config(insecure=True)):
            pass

    said = [one for one in log if "without TLS" in one["event"]]
    assert [one["url"] for one in said] == [ELSEWHERE]


@pytest.mark.parametrize(("opens", "config"), PLAIN)
async def test_hosts_of_other_networks_are_no_machines(opens, config, autojump_clock):
    async with opens(config(), network=MemoryNetwork()):
        pass


async def test_an_invalid_hyperty_is_refused_before_it_has_an_address(autojump_clock):
    async with place() as (here, _):
        with pytest.raises(TypeError, match="deploy takes what makes a hyperty"):
            await here.deploy(Greeter())


async def test_an_invalid_address_is_answered_400(autojump_clock):
    async with place() as (here, _):
        caller = await here.deploy(Caller)
        answer = await caller.request("nonsense", 1)
        assert answer.code == actors.Code.MALFORMED
        assert "'nonsense' is no address" in answer.body["description"]
