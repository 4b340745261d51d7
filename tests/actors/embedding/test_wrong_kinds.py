"""An argument of a wrong kind is a `TypeError` at the call; a path may be text or an object."""

import re
from contextlib import asynccontextmanager

import pytest

import actors
from transports.memory import MemoryNetwork

CONFIG = {"domain": "a.example", "name": "ra", "node": "ws://127.0.0.1:1/link"}


class Plain(actors.Hyperty):
    """Reports and asks."""


def runtime_config(**wrong):
    return actors.RuntimeConfig(**{**CONFIG, **wrong})


def oauth(**wrong):
    given = {"url": "https://idp.example/token", "client_id": "me", "secret": "s3cret"}
    return actors.OAuthCredentials(**{**given, **wrong})


AT_ONCE = [
    (lambda: actors.open_node(5), "domain must be text (str) or NodeConfig, not int"),
    (lambda: actors.open_node("a.example", network="lo"), "network must be Network or None"),
    (lambda: actors.open_node("a.example", trace=5), "trace must be text (str) or Tracer or None"),
    (lambda: actors.open_runtime(None), "domain must be text (str) or RuntimeConfig, not NoneType"),
    (lambda: actors.open_runtime("a.example", 5, node="ws://x"), "RuntimeConfig.name must be text"),
    (lambda: actors.open_runtime("a.example", "ra", node=5), "RuntimeConfig.node must be text"),
    (
        lambda: actors.open_runtime("a.example", "ra", node="ws://x", store=5),
        "RuntimeConfig.store must be a path (str or os.PathLike) or None, not int",
    ),
    (lambda: actors.open_runtime("a.example", "ra", node="ws://x", trace=[]), "trace must be"),
    (lambda: actors.open_runtime("a.example", "ra", node="ws://x", network=0), "network must be"),
    (lambda: runtime_config(identity=5), "RuntimeConfig.identity must be a path"),
    (lambda: runtime_config(insecure="no"), "RuntimeConfig.insecure must be True or False"),
    (lambda: runtime_config(lease=True), "RuntimeConfig.lease must be a whole number, not bool"),
    (lambda: runtime_config(lease="60"), "RuntimeConfig.lease must be a whole number, not str"),
    (lambda: runtime_config(stub_idle="60"), "RuntimeConfig.stub_idle must be a number, not str"),
    (lambda: runtime_config(kinds=("tcp",)), "each of RuntimeConfig.kinds must be Kind, not str"),
    (lambda: runtime_config(kinds=actors.Kind.TCP), "RuntimeConfig.kinds must be tuple"),
    (lambda: runtime_config(nodes=["x"]), "RuntimeConfig.nodes must be Mapping, not list"),
    (lambda: runtime_config(sandboxes=1), "RuntimeConfig.sandboxes must be SandboxTotals"),
    (lambda: runtime_config(catalogues=5), "RuntimeConfig.catalogues must be CatalogueAccess"),
    (lambda: runtime_config(trust="x"), "RuntimeConfig.trust must be Trust or None, not str"),
    (lambda: runtime_config(user=b"x"), "RuntimeConfig.user must be text (str) or None, not bytes"),
    (lambda: actors.NodeConfig(domain=5), "NodeConfig.domain must be text (str), not int"),
    (lambda: actors.NodeConfig(domain="a.example", registry=5), "NodeConfig.registry must be"),
    (lambda: actors.NodeConfig(domain="a.example", state=b"x"), "NodeConfig.state must be a path"),
    (lambda: actors.NodeConfig(domain="a.example", allow_legacy=1), "NodeConfig.allow_legacy must"),
    (lambda: actors.NodeConfig(domain="a.example", domain_keys=("k",)), "each of NodeConfig"),
    (lambda: actors.NodeConfig(domain="a.example", policies="x"), "NodeConfig.policies must be"),
    (lambda: actors.PolicyConfig(files="x.toml"), "files must be several paths"),
    (lambda: actors.PolicyConfig(files=(5,)), "each of files must be a path"),
    (lambda: actors.SandboxTotals(memory="1G"), "'memory' must be"),
    (lambda: actors.SandboxTotals(cpu="1"), "'cpu' must be"),
    (lambda: actors.CatalogueAccess("x", "y"), "CatalogueAccess.places must be Places, not str"),
    (lambda: actors.GivenToken(5), "GivenToken._token must be text (str), not int"),
    (lambda: actors.TokenFile(5), "the token file must be a path"),
    (lambda: actors.TokenCommand("print-token"), "the words of a token command must be several"),
    (lambda: actors.TokenCommand([5]), "each of the words of a token command must be text"),
    (lambda: oauth(url=5), "OAuthCredentials.url must be text"),
    (lambda: oauth(secret=5), "OAuthCredentials.secret must be text (str) or a path"),
    (lambda: oauth(refresh=5), "OAuthCredentials.refresh must be a path"),
    (lambda: actors.read_trust(5), "the trust file must be a path"),
    (lambda: actors.read_key(5), "the key, if it is not bytes, must be a path"),
    (lambda: actors.read_places("x"), "the places must be several"),
    (lambda: actors.read_places([5]), "each of the places must be text"),
    (lambda: actors.handles(5), "handles takes one of the verbs"),
    (lambda: actors.read_as(1, 5), "no JSON is read into 5"),
]

HANDLES = [
    (lambda one: one.request(5), "to must be text (str), not int"),
    (lambda one: one.request("x", type_=5), "type_ must be text"),
    (lambda one: one.request("x", path=5), "path must be text"),
    (lambda one: one.insist(None), "to must be text"),
    (lambda one: one.request_each("x"), "receivers must be several texts"),
    (lambda one: one.request_each([5]), "each of receivers must be text"),
    (lambda one: one.ask("x", "create", []), "body must be Mapping, not list"),
    (lambda one: one.progress("x"), "request must be Message, not str"),
    (lambda one: one.discover(name=5), "name is a text"),
    (lambda one: one.observe(5), "url must be text"),
    (lambda one: one.report(5, {}), "schema must be text"),
    (lambda one: one.report("comm", []), "value must be Mapping"),
    (lambda one: one.report("comm", {}, name=5), "name must be text (str) or None"),
    (lambda one: one.report("comm", {}, observers="x"), "observers must be several texts"),
    (lambda one: one.report("comm", {}, allow=[5]), "each of allow must be text"),
    (lambda one: one.report("comm", {}, resources=5), "resources must be several texts"),
]

RUNTIMES = [
    (lambda one: one.deploy(5), "deploy takes what makes a hyperty"),
    (lambda one: one.deploy(lambda: 5), "makes no hyperty, but int"),
    (lambda one: one.deploy(Plain, 5), "the name of a hyperty is a text"),
    (lambda one: one.deploy(Plain, resources="chat"), "several texts are wanted"),
    (lambda one: one.deploy_apart(Plain()), "deploy_apart takes a class of hyperties"),
    (lambda one: one.deploy_apart(dict), "deploy_apart takes a class of hyperties"),
    (lambda one: one.release_name(5), "name must be text (str) or None"),
    (lambda one: one.discover(user=5), "user is a text"),
    (lambda one: one.discover(nam="x"), "a search has no criterion 'nam', only user, name, schema"),
    (lambda one: one.follow(5, object), "machine must be text"),
    (lambda one: one.follow("p2p_connection", 5), "make must be a callable"),
    (lambda one: one.follow("p2p_connection", object, 5), "about must be text (str) or None"),
]

OBJECTS = [
    (lambda one: one.set(5, 1), "path must be text"),
    (lambda one: one.remove(5), "path must be text"),
    (lambda one: one.add(5, 1), "path must be text"),
    (lambda one: one.discard(5, 1), "path must be text"),
    (lambda one: one.invite(5), "observer must be text"),
    (lambda one: one.allow(5), "observer must be text"),
    (lambda one: one.expel(5), "observer must be text"),
]


@pytest.mark.parametrize(("call", "why"), AT_ONCE)
def test_a_wrong_kind_is_refused_at_once(call, why):
    with pytest.raises(TypeError) as raised:
        call()
    assert why in str(raised.value)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("verb", ["response", "fetch"])
async def test_a_verb_that_is_no_request_is_refused_at_once(verb, autojump_clock):
    """It would have no answer."""
    async with place() as (_, plain, _):
        calls = (plain.request, plain.insist, lambda to, type_: plain.ask(to, type_, {}))
        for call in calls:
            with pytest.raises(ValueError, match="type_ must be one of create, read, update"):
                await call(plain.url, type_=verb)
        with pytest.raises(ValueError, match=verb):
            await plain.request_each([plain.url], type_=verb)


async def test_a_data_object_without_a_schema_is_refused_at_once(autojump_clock):
    async with place() as (_, plain, _):
        with pytest.raises(ValueError, match="schema is empty"):
            plain.report("", {})


@asynccontextmanager
async def place():
    network = MemoryNetwork()
    async with (
        actors.open_node("a.example", network=network) as node,
        actors.open_runtime("a.example", "ra", node=node.url, network=network) as runtime,
        await runtime.deploy(Plain) as plain,
        plain.report("comm", {"a": 1}) as reported,
    ):
        yield runtime, plain, reported


async def test_a_wrong_kind_is_refused_by_each_method(autojump_clock):
    """Nothing of it reaches another party."""
    async with place() as (runtime, plain, reported):
        for target, rows in ((plain, HANDLES), (runtime, RUNTIMES), (reported, OBJECTS)):
            for call, why in rows:
                with pytest.raises(TypeError, match=re.escape(why)):
                    await call(target)
        assert (dict(reported.value), plain.state) == ({"a": 1}, "running")
