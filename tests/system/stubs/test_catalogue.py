"""Domains as processes: one reaches the other by what that publishes (PFY-01, CAT-09, S16)."""

import json
from contextlib import asynccontextmanager

import attrs
import pytest

from actors.cli.group import ExitCode
from tests.support.command import call, serving, typed

pytestmark = pytest.mark.timeout(240)

OPEN = ("--allow-legacy",)


@attrs.define
class Two:
    """A domain that asks, and one that publishes, or not yet."""

    folder: object
    node_a: str
    node_b: str
    catalogue: str
    echo: str
    key: dict[str, str]

    def publish(self, endpoint=None, *more):
        """Sign and publish where the domain is reached, as a person does."""
        profile = {"stub": "websocket", "endpoint": endpoint or self.node_b}
        draft, signed = self.folder / "draft.json", str(self.folder / "d.jws")
        draft.write_text(json.dumps({"profile": profile}))
        whose = ("--domain", "b.example", "--key", self.key["key"])
        done = typed("stub", "sign", str(draft), *whose, "--out", signed, *more)
        assert done.status == ExitCode.OK, done.err
        into = ("--into", str(self.folder / "catalogue"), "--keys", self.key["jwks"])
        done = typed("stub", "publish", signed, *into)
        assert done.status == ExitCode.OK, done.err

    def trust(self, more='reach = "anywhere"'):
        path = self.folder / "trust.toml"
        path.write_text(f'[domains."b.example"]\nkeys = "keys/jwks.json"\n{more}\n')
        return str(path)

    async def ask(self, trust, where=None, more=()):
        ways = ("--catalogue", where or f"b.example={self.catalogue}", "--trust", trust)
        asked = ("--domain", "a.example", "--node", self.node_a)
        return await call("request", *asked, *ways, *more, self.echo, '"hello"')


@asynccontextmanager
async def two_domains(folder):
    done = typed("token", "keys", "--out", str(folder / "keys"), "--kid", "b1")
    (folder / "catalogue").mkdir()
    shown = ("--http", "127.0.0.1:0", "--catalogue", str(folder / "catalogue"))
    name = ("--name", "rb", "--p2p", "none", "--hyperty", "echo=actors.hyperties:Echo")
    async with (
        serving("node", "--domain", "a.example", *OPEN) as a,
        serving("node", "--domain", "b.example", *OPEN, *shown) as b,
        serving("runtime", "--domain", "b.example", "--node", b.url, *name) as rb,
    ):
        echo, http = rb.ready["hyperties"]["echo"], str(b.ready["http_url"])
        yield Two(folder, a.url, b.url, http, echo, json.loads(done.out[0]))


async def test_a_domain_is_reached_as_soon_as_it_is_published_and_no_code_is_changed(tmp_path):
    async with two_domains(tmp_path) as two:
        before = await two.ask(two.trust())
        two.publish()
        after = await two.ask(two.trust())
        directory = await two.ask(two.trust(), f"b.example={tmp_path / 'catalogue'}")

    assert before.status == ExitCode.FAILED
    assert "has no .well-known/" in before.err[0]
    assert (after.status, json.loads(after.out[0])["value"]) == (ExitCode.OK, "hello")
    assert directory.status == ExitCode.OK


async def test_an_untrusted_descriptor_is_reported_in_one_sentence(tmp_path):
    async with two_domains(tmp_path) as two:
        two.publish()
        private = await two.ask(two.trust('reach = "public"'))
        somebody = await two.ask(two.trust(), two.catalogue.replace("127.0.0.1", "{domain}"))

    for ended, said in ((private, "in a private network"), (somebody, "cannot be read")):
        assert ended.status == ExitCode.CANNOT_CONNECT
        assert "the protocolstub 'default' of b.example is refused: " in ended.err[-1]
        assert said in ended.err[-1]


async def test_a_descriptor_leads_to_no_other_machine_without_tls(tmp_path):
    """SEC-13: a host counts as another machine unless it is known to be this one."""
    async with two_domains(tmp_path) as two:
        two.publish(two.node_b.replace("127.0.0.1", "127.1"))
        plain = await two.ask(two.trust())
        wanted = await two.ask(two.trust(), more=("--insecure",))

    assert plain.status == ExitCode.CANNOT_CONNECT
    assert "is on another machine and without TLS; ask the domain" in plain.err[-1]
    assert (wanted.status, json.loads(wanted.out[0])["value"]) == (ExitCode.OK, "hello")


async def test_a_rollback_is_refused_by_the_next_process(tmp_path):
    async with two_domains(tmp_path) as two:
        two.publish(None, "--counter", "7")
        assert (await two.ask(two.trust())).status == ExitCode.OK
        (tmp_path / "catalogue/.well-known/protocolstub/default").unlink()
        two.publish(None, "--counter", "6")
        again = await two.ask(two.trust())

    assert again.status == ExitCode.CANNOT_CONNECT
    assert "its counter 6 is less than 7, which was seen before" in again.err[-1]


def test_half_of_the_options_is_said(tmp_path):
    ask = ("request", "--domain", "a.example", "--node", "ws://127.0.0.1:1/link")
    to = ("hyperty://b.example/x", "1")
    alone = typed(*ask, "--catalogue", "/srv", *to)
    wrong = typed(*ask, "--catalogue", "/srv", "--trust", str(tmp_path / "gone.toml"), *to)
    odd = typed(*ask, "--catalogue", "ftp://x", *to)

    assert [one.status for one in (alone, wrong, odd)] == [
        ExitCode.CONFIGURATION, ExitCode.CONFIGURATION, ExitCode.USAGE,
    ]  # fmt: skip
    assert "--catalogue and --trust go together" in alone.err[0]
    assert "gone.toml: No such file" in wrong.err[0]


def test_a_catalogue_needs_a_listener_and_a_directory(tmp_path):
    node = ("node", "--domain", "b.example", *OPEN, "--catalogue")
    silent = typed(*node, str(tmp_path))
    gone = typed(*node, str(tmp_path / "gone"), "--http", "127.0.0.1:0")

    assert (silent.status, gone.status) == (ExitCode.CONFIGURATION, ExitCode.CONFIGURATION)
    assert "add --http" in silent.err[0]
    assert "is no directory that can be served" in gone.err[0]
