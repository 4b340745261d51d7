"""What identity providers say of the two ends of a direct link, a page and a program (SEC-23)."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

import actors
from actors import GivenToken
from actors.catalogue.trust_file import IssuerTrust, Trust
from actors.embedding import Runtime, open_runtime
from actors.hyperties import Caller
from actors.keys.key_set import read_keys
from actors.keys.runtime_key import make_runtime_key
from fsm.p2p.link_policy import LinkPolicy, P2pUse, PeerPolicy
from specs.identity import VouchedBy
from specs.limits.node import SESSION_LIFE
from tests.support.browser import Browser, needs_chromium
from tests.support.node.issuer import ISSUER, Issuer
from tests.web.pages import DOMAIN, Served, open_served_node
from tests.web.test_browser_links import ASK, ASK_UNTIL_LIVE, DOUBLE, FLAGS, LIVE, own_address
from tests.web.test_browser_runtime import THUMBPRINT, WhoAsks, close, judged
from transports.link import Kind
from transports.webrtc.extra import is_webrtc_installed

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(240),
    needs_chromium,
    pytest.mark.skipif(not is_webrtc_installed(), reason="the extra 'webrtc' is not installed"),
]

OPEN = """async (options) => {
    const { openRuntime } = await import("/web/protofly.js");
    window.steps = [];
    const own = { domain: "a.example", key: window.pair, trace: true };
    window.runtime = await openRuntime({ ...own, ...options });
    window.runtime.trace.listen((step) => window.steps.push(step));
}"""
SHOW = "(token) => { window.runtime.said.assertion = token; }"
FAILED = """() => window.steps
    .filter((step) => step.machine === "p2p_connection" && step.new === "failed")
    .map(({ key, why }) => [key.split("|")[1], why])"""
UNVOUCHED = "an identity provider has to vouch for the peer: "
ENOUGH = f"(times) => ({FAILED})().length >= times"


def url_of(name: str) -> str:
    return f"hyperty-runtime://{DOMAIN}/{name}"


def strange(issuer: Issuer) -> Issuer:
    """Return one with the same names and another key."""
    return attrs.evolve(issuer, key=Issuer().key)


FALSE = {
    "issuer": (
        lambda issuer, good: issuer.token(**good | {"iss": "https://another.ex"}),
        ("the trust file does not name its issuer", "its issuer is not believed here"),
    ),
    "signature": (
        lambda issuer, good: strange(issuer).token(**good),
        ("its signature does not fit", "no key that is believed signed it"),
    ),
    "expired": (
        lambda issuer, good: attrs.evolve(issuer, now=issuer.now - SESSION_LIFE - 1).token(**good),
        ("it expired", "its claim 'exp' is missing, or does not do here"),
    ),
    "key": (
        lambda issuer, good: issuer.token(**good | {"cnf": {"jkt": Issuer().key.thumbprint()}}),
        (
            "it is bound to a key, and this key was not proven",
            "its claim 'cnf' is missing, or does not do here",
        ),
    ),
    "runtime": (
        lambda issuer, good: issuer.token(**good | {"runtime": url_of("another")}),
        (f"it is about {url_of('another')}",) * 2,
    ),
}
"""Tokens of which one claim is false; what a program and what a page says of it."""


@attrs.define
class Ends:
    """Where a page and a program demand an identity provider's word of each other.

    The node has no logins, and takes any token: only the other end of a link judges it.
    """

    served: Served
    browser: Browser
    issuer: Issuer
    folder: Path

    def claims(self, name: str, thumbprint: str) -> dict:
        return {"sub": f"user://idp.ex/{name}", "cnf": {"jkt": thumbprint}, "runtime": url_of(name)}

    async def open_page(self, name: str, false: str | None = None):
        """Open a page with a good token; it shows its peers another, if one is named."""
        page = await self.browser.new_page(isolated=True)
        await page.goto(self.served.page)
        good = self.claims(name, await page.evaluate(THUMBPRINT))
        issuers = {ISSUER: {"keys": json.loads(self.issuer.jwks())}}
        p2p = {"require": "identity-provider", "issuers": issuers}
        options = {"node": self.served.url, "name": name, "p2p": p2p}
        await page.evaluate(OPEN, options | {"token": self.issuer.token(**good)})
        if false is not None:
            await page.evaluate(SHOW, FALSE[false][0](self.issuer, good))
        return page, await page.evaluate(DOUBLE)

    @asynccontextmanager
    async def open_program(self, name: str, false: str | None = None) -> AsyncIterator[Runtime]:
        """Run a program, likewise."""
        key = make_runtime_key()
        file = self.folder / f"{name}.key"
        file.write_bytes(key.to_jwk())
        file.chmod(0o600)
        good = self.claims(name, key.thumbprint)
        policy = PeerPolicy(DOMAIN, P2pUse.WHENEVER_POSSIBLE)
        config = actors.RuntimeConfig(
            domain=DOMAIN,
            name=name,
            node=self.served.url,
            identity=file,
            credentials=GivenToken(self.issuer.token(**good)),
            p2p_require=VouchedBy.IDENTITY_PROVIDER,
            trust=Trust({}, issuers={ISSUER: IssuerTrust(read_keys(self.issuer.jwks()))}),
            kinds=(Kind.WEBRTC,),
            p2p_host=own_address(),
            links=LinkPolicy(P2pUse.WHENEVER_POSSIBLE, (policy,)),
        )
        async with open_runtime(config, trace=self.folder / "traces") as program:
            if false is not None:
                shown = FALSE[false][0](self.issuer, good)
                program._running.identity.assertion = shown
            yield program


@pytest.fixture
async def ends(browsers, tmp_path) -> AsyncIterator[Ends]:
    issuer = Issuer(domain=DOMAIN, now=time.time())  # noqa: TID251 - tokens are of our time
    traces = tmp_path / "traces"
    async with open_served_node(traces) as served, browsers.open("chromium", *FLAGS) as browser:
        yield Ends(served, browser, issuer, tmp_path)
    assert judged(traces).startswith("0 "), judged(traces)


async def test_a_page_and_a_program_know_each_other_by_their_identity_provider(ends):
    async with ends.open_program("program") as program:
        who, caller = await program.deploy(WhoAsks), await program.deploy(Caller)
        page, url = await ends.open_page("page")
        # The node has no logins, and knows nobody.
        assert await page.evaluate(ASK, who.url, 1) == [None, "none"]
        await page.evaluate(ASK_UNTIL_LIVE, who.url, 1)
        assert await page.evaluate(ASK, who.url, 1) == ["user://idp.ex/page", "identity-provider"]
        assert (await caller.request(url, "who")).value == {
            "runtime": program.url,
            "user": "user://idp.ex/program",
            "vouchedBy": "identity-provider",
        }
        await close(page, ends.folder / "traces")
        assert page.messages == []


async def test_a_program_refuses_pages_that_show_a_token_of_which_a_claim_is_false(ends):
    async with ends.open_program("program") as program:
        who = await program.deploy(WhoAsks)
        pages = [await ends.open_page(name, name) for name in FALSE]
        async with trio.open_nursery() as nursery:
            for page, _ in pages:
                nursery.start_soon(refused_by_program, page, who.url)
        assert await program.links() == ()
        for page, _ in pages:
            await close(page, ends.folder / "traces")
    reasons = {
        line["key"].split("|")[1]: line["why"]
        for file in (ends.folder / "traces").rglob("node=program/*.jsonl")
        for line in map(json.loads, file.read_text().splitlines())
        if line.get("machine") == "p2p_connection" and line.get("new") == "failed"
    }
    assert sorted(reasons) == sorted(map(url_of, FALSE))
    for name, (_, (why, _)) in FALSE.items():
        assert reasons[url_of(name)].startswith(f"{UNVOUCHED}{why}")


async def refused_by_program(page, who):
    """Ask for a link, which is given up for want of an answer; messages go by the node."""
    assert await page.evaluate(ASK, who, 1) == [None, "none"]
    await page.until(ENOUGH, 1)
    assert await page.evaluate(ASK, who, 1) == [None, "none"]
    assert await page.evaluate(LIVE) == 0


async def test_a_page_refuses_programs_that_show_a_token_of_which_a_claim_is_false(ends):
    page, url = await ends.open_page("page")
    for number, name in enumerate(FALSE, 1):
        async with ends.open_program(name, name) as program:
            caller = await program.deploy(Caller)
            told = {"runtime": program.url, "user": None, "vouchedBy": "none"}
            assert (await caller.request(url, "who")).value == told
            await page.until(ENOUGH, number)
            assert (await caller.request(url, "who")).value == told
            assert await page.evaluate(LIVE) == 0
    reasons = {url_of(name): f"{UNVOUCHED}{why}" for name, (_, (_, why)) in FALSE.items()}
    assert dict(await page.evaluate(FAILED)) == reasons
    await close(page, ends.folder / "traces")
    assert page.messages == []
