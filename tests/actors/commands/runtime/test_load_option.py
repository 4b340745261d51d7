"""`runtime --load`: a hyperty is signed, published, verified and run, by commands only (HYP-01)."""

import orjson
import pytest

from actors.cli.group import ExitCode
from actors.commands.runtime import command as runtime
from tests.support.catalogues import sources
from tests.support.command import call, called, serving
from tests.support.runtime.stub_publisher import StubPublisher

GREETER = "hyperty-catalogue://catalogue.b.example/.well-known/hyperty/greeter"
SOURCE = """
import actors


class Greeter(actors.Hyperty):
    async def on_request(self, message):
        return f"{self.configuration['greeting']}, {message.body['value']}"
"""
RA = ("--domain", "a.example", "--name", "ra", "--p2p", "none")


@pytest.fixture
def publisher(tmp_path):
    return StubPublisher(tmp_path)


def signed(publisher, **draft):
    """Sign a hyperty and its package."""
    publisher.acme = publisher.made("acme", "acme")
    publisher.write("greeter.json", {"configuration": {"greeting": "hello"}, **draft})
    code = sources(publisher.folder / "greeter", {"greeter.py": SOURCE})
    return publisher.sign(
        *("--entry", "hyperty/greeter", "--package", str(code)),
        *("--entry-point", "greeter:Greeter"),
        *("--publisher", "acme", "--publisher-key", publisher.acme["key"]),
        draft="greeter.json",
    )


def trusting(publisher):
    """Return options of a runtime that trusts domain and publisher."""
    trust = publisher.write(
        "trust.toml",
        f"""
[domains."b.example"]
keys = "{publisher.key["jwks"]}"
publishers = ["acme"]

[publishers.acme]
keys = "{publisher.acme["jwks"]}"
""",
    )
    return ("--catalogue", f"b.example={publisher.catalogue}", "--trust", trust)


async def test_a_hyperty_is_published_and_loaded_by_commands(publisher):
    """HYP-01, CAT-02."""
    assert signed(publisher).status == ExitCode.OK
    assert publisher.publish("--keys", publisher.key["jwks"]).status == ExitCode.OK
    options = trusting(publisher)
    async with serving("node", "--domain", "a.example", "--allow-legacy") as node:
        ra = (*RA, "--node", node.url, *options, "--load", GREETER)
        async with serving("runtime", *ra) as running:
            url = running.ready["hyperties"]["greeter"]
            ask = ("request", "--domain", "a.example", "--node", node.url, url, '"Bob"')
            answer = await call(*ask)
    assert orjson.loads(answer.out[0])["value"] == "hello, Bob"


async def test_a_hyperty_that_is_refused_is_said_with_its_step(publisher):
    assert signed(publisher, constraints={"memory": 100_000}).status == ExitCode.OK
    publisher.publish("--keys", publisher.key["jwks"])
    async with serving("node", "--domain", "a.example", "--allow-legacy") as node:
        ra = (*RA, "--node", node.url, *trusting(publisher), "--load", GREETER)
        ended = await call("runtime", *ra)
    assert ended.status == ExitCode.CONFIGURATION
    assert "constraints: " in " ".join(ended.err)
    assert "it needs memory 100000, and this runtime has 256" in " ".join(ended.err)


def test_a_hyperty_that_no_runtime_could_load_is_not_signed(publisher):
    done = signed(publisher, constraints={"telepathy": True})
    assert done.status == ExitCode.CONFIGURATION
    assert "'telepathy' is unknown" in " ".join(done.err)
    publisher.write("bare.json", {})
    bare = publisher.sign("--entry", "hyperty/greeter", draft="bare.json")
    assert "it has no package" in " ".join(bare.err)


def test_verify_reports_what_a_runtime_would_refuse(publisher):
    signed(publisher, constraints={"memory": 100_000})
    publisher.publish("--keys", publisher.key["jwks"])
    options = trusting(publisher)
    done = publisher.verify(
        *options[2:], where=str(publisher.catalogue / ".well-known/hyperty/greeter")
    )
    assert "its code runs in a sandbox" in " ".join(done.out)
    trust = (publisher.folder / "trust.toml").read_text().replace('publishers = ["acme"]', "")
    publisher.write("trust.toml", trust)
    again = publisher.verify(
        *options[2:], where=str(publisher.catalogue / ".well-known/hyperty/greeter")
    )
    assert again.status == ExitCode.REFUSED
    assert "unknown-publisher" in " ".join(again.out)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--load", GREETER), "--load needs --catalogue and --trust"),
        (("--load", GREETER, "--load", GREETER), "named twice"),
        (("--load", f"{GREETER}/version"), "describes no hyperty"),
        (("--load", GREETER.replace("hyperty/g", "runtime/g")), "describes no hyperty"),
        (("--load", "hyperty://a.example/1"), "is not of the form"),
    ],
)
def test_addresses_that_cannot_be_loaded_are_refused_at_once(options, said):
    done = called(runtime, *RA, "--node", "ws://127.0.0.1:1/link", *options)
    assert done.status == ExitCode.USAGE
    assert said in " ".join(" ".join(done.err).split())
