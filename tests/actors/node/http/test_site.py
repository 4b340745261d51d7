"""Pages: what each path answers, and who may read metrics (S11)."""

from http import HTTPStatus

import pytest
import trio

from actors.http.config import HttpConfig, ShownCatalogue
from actors.http.metrics import Part, Readiness, ReadyPage
from actors.http.service import site_of
from actors.http.site import Visit
from actors.keys.key_set import read_keys
from actors.keys.signing import make_key
from actors.kit.counters import Counters

TOKEN = "canary-token-of-metrics"  # noqa: S105 - a token of tests
LOCAL = (("host", "127.0.0.1:9440"),)


def site(token=None, standing=None, probes=()):
    config = HttpConfig("127.0.0.1:0", None if token is None else token.encode())
    if standing is None:
        standing = Readiness()
        standing.ready(Part.NODE)
    return site_of(config, Counters(), ReadyPage(standing, dict(probes)))


async def status(path, *headers, method="GET", token=None):
    return (await site(token).answer(Visit(method, path, headers or LOCAL))).status


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_known_path_is_served(path, method):
    assert await status(path, method=method) == HTTPStatus.OK


@pytest.mark.parametrize(
    "path", ["/", "", "*", "/metrics/", "/Metrics", "/healthz/..", "//metrics"]
)
async def test_an_unknown_path_is_404(path):
    assert await status(path) == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get"])
async def test_nothing_can_be_changed(method):
    page = await site().answer(Visit(method, "/metrics", LOCAL))
    assert (page.status, page.headers) == (405, (("allow", "GET, HEAD"),))


@pytest.mark.parametrize("shown", [
    (), ("authorization", ""), ("authorization", TOKEN), ("authorization", f"Basic {TOKEN}"),
    ("authorization", "Bearer"), ("authorization", "Bearer "), ("authorization", "Bearer \xff"),
    ("authorization", f"Bearer {TOKEN}x"), ("authorization", f"Bearer {TOKEN[:-1]}"),
    ("authorization", f"Bearer {TOKEN.upper()}"), ("x-forwarded-for", "127.0.0.1"),
    ("forwarded", "for=127.0.0.1"), ("x-real-ip", "127.0.0.1"), ("cookie", TOKEN),
])  # fmt: skip
async def test_a_request_without_the_token_is_401(shown):
    page = await site(TOKEN).answer(Visit("GET", "/metrics", (*LOCAL, *([shown] if shown else []))))
    assert (page.status, page.headers) == (401, (("www-authenticate", "Bearer"),))
    assert b"canary" not in page.body


@pytest.mark.parametrize("word", ["Bearer", "bearer", "BEARER"])
async def test_a_client_with_the_token_reads_from_any_host(word):
    shown = ("authorization", f"{word} {TOKEN}")
    far = ("host", "node.example"), ("x-forwarded-for", "203.0.113.9")
    assert await status("/metrics", *far, shown, token=TOKEN) == HTTPStatus.OK


async def test_health_needs_no_token():
    for path in ("/healthz", "/readyz"):
        assert await status(path, ("host", "node.example"), token=TOKEN) == HTTPStatus.OK


@pytest.mark.parametrize(
    "headers",
    [
        [("host", "evil.example")],
        [("host", "10.0.0.1:9440")],
        [],
        [*LOCAL, ("x-forwarded-for", "127.0.0.1")],
        [*LOCAL, ("forwarded", "for=127.0.0.1")],
        [*LOCAL, ("via", "1.1 proxy")],
        [*LOCAL, ("x-real-ip", "127.0.0.1")],
    ],
)
async def test_without_a_token_metrics_stay_on_the_machine(headers):
    """Neither a page of somebody else nor somebody behind a proxy reads them."""
    page = await site().answer(Visit("GET", "/metrics", tuple(headers)))
    assert page.status == HTTPStatus.FORBIDDEN


async def test_without_a_token_nginx_as_it_is_installed_reads_nothing():
    """It names this machine as the host, and adds no header; it asks in the old version."""
    visit = Visit("GET", "/metrics", (*LOCAL, ("connection", "close")), version="1.0")
    assert (await site().answer(visit)).status == HTTPStatus.FORBIDDEN
    shown = ("authorization", f"Bearer {TOKEN}")
    visit = Visit("GET", "/metrics", (*LOCAL, shown), version="1.0")
    assert (await site(TOKEN).answer(visit)).status == HTTPStatus.OK


async def never():
    await trio.sleep_forever()


async def well():
    await trio.lowlevel.checkpoint()


async def ill():
    await trio.lowlevel.checkpoint()
    return "its file is gone"


async def test_a_node_is_not_ready_before_it_has_started():
    page = await site(standing=Readiness()).answer(Visit("GET", "/readyz"))
    assert page.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert b'"part":"node","why":"it is starting"' in page.body


async def test_each_part_that_cannot_serve_is_listed_with_its_reason(autojump_clock):
    """Parts that do not answer are not waited for."""
    standing = Readiness()
    standing.ready(Part.NODE)
    standing.lacking(Part.KEYS, "no key has been read")
    probes = {Part.BUS: never, Part.LISTENER: well, Part.REGISTRY: ill, Part.KEYS: never}
    began = trio.current_time()
    page = await site(standing=standing, probes=probes).answer(Visit("GET", "/readyz"))
    assert trio.current_time() == began + 1
    assert page.body == (
        b'{"ready":false,"missing":[{"part":"bus","why":"no answer within 1 s"},'
        b'{"part":"registry","why":"its file is gone"},'
        b'{"part":"identity-keys","why":"no key has been read"}]}\n'
    )


async def test_a_part_that_can_serve_again_is_no_longer_listed():
    standing = Readiness()
    standing.ready(Part.NODE)
    standing.lacking(Part.KEYS, "no key has been read")
    standing.ready(Part.KEYS)
    assert (await site(standing=standing).answer(Visit("GET", "/readyz"))).status == HTTPStatus.OK


KEYS = {"keys": [make_key("EdDSA", "of a.ex").public()]}


@pytest.mark.parametrize("has_catalogue", [True, False])
async def test_the_public_keys_of_the_domain_are_shown(has_catalogue, tmp_path):
    shown = ShownCatalogue("a.ex", tmp_path) if has_catalogue else None
    config = HttpConfig("127.0.0.1:0", catalogue=shown)
    served = site_of(config, Counters(), ReadyPage(Readiness(), {}), keys=KEYS)

    page = await served.answer(Visit("GET", "/.well-known/jwks.json", LOCAL))
    assert (page.status, page.content_type) == (200, "application/jwk-set+json")
    assert read_keys(page.body).keys() == {"of a.ex"}
    assert b'"d"' not in page.body
    other = await served.answer(Visit("GET", "/.well-known/other.json", LOCAL))
    assert other.status == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_without_a_token_no_page_of_another_origin_reads_metrics(site):
    assert await status("/metrics", *LOCAL, ("sec-fetch-site", site)) == HTTPStatus.FORBIDDEN
    assert await status("/metrics", *LOCAL, ("sec-fetch-site", "same-origin")) == HTTPStatus.OK
