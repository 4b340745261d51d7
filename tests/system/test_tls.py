"""Nodes with TLS, as processes: what is encrypted, who is believed, and what is said if not."""

import signal
import ssl
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import urlsplit

import pytest
import trio

from actors import Hyperty, NodeConfig, RuntimeConfig, open_node, open_runtime
from actors.cli.group import ExitCode
from tests.support.command import call, serving, typed
from tests.support.wire.certificates import Certificates
from transports.tls import client_context

pytestmark = pytest.mark.timeout(240)

NODE = ("node", "--domain", "a.ex", "--allow-legacy")
NOBODY = "hyperty://a.ex/nobody"


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path, "127.0.0.1", "localhost")


@pytest.fixture
def with_tls(certificates):
    """Options of a node with TLS."""
    return (*NODE, "--tls-cert", str(certificates.cert), "--tls-key", str(certificates.key))


async def asked(url, *options):
    """How a request for nobody ends: the node's 404 shows that it was reached."""
    return await call("request", "--node", url, "--domain", "a.ex", *options, NOBODY, "1")


def is_reached(ended):
    return ended.status == ExitCode.FAILED and "404" in ended.err[-1]


async def shown(url):
    """The certificate that a listener shows."""
    place = urlsplit(url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    stream = await trio.open_ssl_over_tcp_stream(
        place.hostname, place.port, ssl_context=context, https_compatible=True
    )
    async with stream:
        await stream.do_handshake()
        return stream.getpeercert(binary_form=True)


async def test_a_request_by_tls_is_answered(certificates, with_tls):
    """SEC-10."""
    async with serving(*with_tls) as node:
        assert node.url.startswith("wss://127.0.0.1:")
        assert is_reached(await asked(node.url, "--ca", str(certificates.ca)))
        named = node.url.replace("127.0.0.1", "localhost")
        assert is_reached(await asked(named, "--ca", str(certificates.ca)))


async def test_health_and_metrics_have_a_certificate_of_their_own(certificates, with_tls, tmp_path):
    cert, key = certificates.issue(tmp_path, "http", "127.0.0.1")
    http = ("--http", "127.0.0.1:0", "--http-tls-cert", str(cert), "--http-tls-key", str(key))
    async with serving(*with_tls, *http) as node:
        assert node.ready["http_url"].startswith("https://")
        place = urlsplit(node.ready["http_url"])
        stream = await trio.open_ssl_over_tcp_stream(
            place.hostname, place.port, ssl_context=client_context(certificates.ca),
            https_compatible=True,
        )  # fmt: skip
        async with stream:
            await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert (await stream.receive_some(4096)).startswith(b"HTTP/1.1 200 ")
        assert await shown(node.ready["http_url"]) != await shown(node.url)


def expired(certificates, directory):
    return certificates.issue(
        directory, "expired", "127.0.0.1", not_after=datetime.now(UTC) - timedelta(hours=1)
    )


def of_another_host(certificates, directory):
    return certificates.issue(directory, "other", "b.example")


def of_another_authority(certificates, directory):
    (directory / "other").mkdir()
    other = Certificates(directory / "other")
    return other.cert, other.key


OF_AUTHORITY = "name its authority with --ca, or correct --node"
WRONG = {
    expired: "certificate has expired",
    of_another_host: "IP address mismatch",
    of_another_authority: "unable to get local issuer certificate",
}


@pytest.mark.parametrize("makes", WRONG, ids=lambda makes: makes.__name__)
async def test_a_certificate_that_does_not_fit_is_one_sentence(makes, certificates, tmp_path):
    """SEC-10, SEC-14."""
    cert, key = makes(certificates, tmp_path)
    async with serving(*NODE, "--tls-cert", str(cert), "--tls-key", str(key)) as node:
        by = ("--node", node.url, "--domain", "a.ex", "--ca", str(certificates.ca))
        ended = await call("request", *by, NOBODY, "1")
        served = await call("runtime", *by, "--name", "r")

    assert (ended.status, served.status) == (ExitCode.CANNOT_CONNECT, ExitCode.CANNOT_CONNECT)
    (sentence,) = ended.err
    assert served.err == [sentence]
    assert sentence.startswith(f"protofly: cannot connect to {node.url}: its certificate is not ")
    assert WRONG[makes] in sentence
    is_expired = makes is expired
    advice = "renew the certificate of the node" if is_expired else OF_AUTHORITY
    assert sentence.endswith(f"; {advice}")


async def test_a_node_that_wants_certificates_admits_their_holders_only(
    certificates, with_tls, tmp_path
):
    """SEC-12."""
    cert, key = certificates.issue(tmp_path, "client", "alice")
    ca = ("--ca", str(certificates.ca))
    async with serving(*with_tls, "--tls-client-ca", str(certificates.ca)) as node:
        refused = await asked(node.url, *ca)
        admitted = await asked(node.url, *ca, "--tls-cert", str(cert), "--tls-key", str(key))

    assert refused.status == ExitCode.CANNOT_CONNECT
    assert is_reached(admitted)


async def test_a_new_certificate_is_shown_after_sighup_and_a_wrong_one_is_not(
    certificates, with_tls, tmp_path
):
    async with serving(*with_tls, "--log", "info") as node:
        first = await shown(node.url)
        cert, key = certificates.issue(tmp_path, "new", "127.0.0.1")
        cert.replace(certificates.cert)
        key.replace(certificates.key)
        node.process.send_signal(signal.SIGHUP)
        with trio.fail_after(30):
            while (second := await shown(node.url)) == first:  # noqa: ASYNC110 - a process
                await trio.sleep(0.05)

        certificates.cert.write_text("no certificate")
        node.process.send_signal(signal.SIGHUP)
        await trio.sleep(0.5)  # real time: what must not come has no event
        assert await shown(node.url) == second


async def test_a_client_without_tls_affects_no_other_client(certificates, with_tls):
    async with serving(*with_tls) as node:
        place = urlsplit(node.url)
        plain = await asked(node.url.replace("wss:", "ws:"))
        for garbage in (b"", b"\x16\x03\x01", b"\x16\x03\x01\x40\x00" + 20_000 * b"x", 99 * b"\0"):
            stream = await trio.open_tcp_stream(place.hostname, place.port)
            await stream.send_all(garbage)
            await stream.aclose()
        assert is_reached(await asked(node.url, "--ca", str(certificates.ca)))

    assert plain.status == ExitCode.CANNOT_CONNECT


async def test_tls_to_a_node_without_is_one_sentence():
    async with serving(*NODE) as node:
        ended = await asked(node.url.replace("ws:", "wss:"))

    assert ended.status == ExitCode.CANNOT_CONNECT
    assert len(ended.err) == 1


def without_the_file(certificates):
    certificates.key.unlink()
    return f"cannot use {certificates.key}: no such file or directory"


def with_another_key(certificates):
    _, other = certificates.issue(certificates.cert.parent, "other", "127.0.0.1")
    other.replace(certificates.key)
    return f"cannot use {certificates.key}: it is not the key of the certificate in "


def with_no_certificate(certificates):
    certificates.cert.write_text("none")
    return f"cannot use {certificates.cert}: it holds no certificate in PEM form"


def with_no_key(certificates):
    certificates.key.write_text("none")
    return f"cannot use {certificates.key}: it holds no private key in PEM form"


@pytest.mark.parametrize(
    "spoil", [without_the_file, with_another_key, with_no_certificate, with_no_key]
)
def test_a_file_that_cannot_be_used_is_named(spoil, certificates, with_tls):
    """SEC-14."""
    sentence = spoil(certificates)

    ended = typed(*with_tls)

    assert ended.status == ExitCode.CONFIGURATION
    assert ended.err[0].startswith(f"protofly: {sentence}")
    assert "; correct --tls-" in ended.err[0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--tls-cert", "x"), "--tls-cert and --tls-key go together; add the other one"),
        (("--http-tls-key", "x"), "--http-tls-cert and --http-tls-key go together"),
        (("--tls-client-ca", "x"), "--tls-client-ca needs a listener with TLS; add --tls-cert"),
        (("--http-tls-cert", "x", "--http-tls-key", "x"), "--http-tls-cert is of no listener"),
        (("--foreign", "b.ex=ws://10.0.0.7/link"), "ws://10.0.0.7/link is dialled without TLS"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_options_that_contradict_each_other_are_one_sentence(options, sentence):
    ended = typed(*NODE, *options)

    assert ended.status in {ExitCode.CONFIGURATION, ExitCode.USAGE}
    assert ended.err[0].startswith(f"protofly: {sentence}")


@pytest.mark.parametrize("option", ["--ca", "--tls-cert", "--tls-key"])
@pytest.mark.parametrize("command", ["runtime", "request"])
def test_a_file_that_a_dialler_cannot_use_is_named_with_its_option(command, option, certificates):
    """SEC-14."""
    cert, key = certificates.cert, certificates.key
    files = {"--ca": certificates.ca, "--tls-cert": cert, "--tls-key": key}
    missing = cert.with_name("missing.pem")
    options = [text for name, file in {**files, option: missing}.items() for text in (name, file)]
    more = ("--name", "r") if command == "runtime" else (NOBODY, "1")
    url = "wss://127.0.0.1:1/link"

    ended = typed(command, "--node", url, "--domain", "a.ex", *map(str, options), *more)

    assert (ended.status, ended.err) == (
        ExitCode.CONFIGURATION,
        [f"protofly: cannot use {missing}: no such file or directory; correct {option}"],
    )


async def test_a_dialler_reports_a_key_that_others_can_read(certificates, with_tls, tmp_path):
    """SEC-14."""
    cert, key = certificates.issue(tmp_path, "client", "alice")
    key.chmod(0o644)
    ca = ("--ca", str(certificates.ca))
    async with serving(*with_tls, "--tls-client-ca", str(certificates.ca)) as node:
        ended = await asked(node.url, *ca, "--tls-cert", str(cert), "--tls-key", str(key))

    assert is_reached(ended)
    assert ended.err[0] == f"protofly: {key} can be read by others; chmod 600 {key}"


async def test_a_key_that_others_can_read_is_reported(certificates, with_tls, tmp_path):
    key = certificates.key
    key.chmod(0o644)
    with (tmp_path / "log").open("w+b") as log:
        async with serving(*with_tls, stderr=log) as node:
            await node.stop()
        reported = (tmp_path / "log").read_text()

    assert f"protofly: {key} can be read by others; chmod 600 {key}\n" in reported


@pytest.mark.parametrize("name", ["10.0.0.7", "node.example"])
def test_a_node_elsewhere_is_not_dialled_without_tls(name):
    """SEC-13."""
    url = f"ws://{name}:1/link"

    ended = typed("request", "--node", url, "--domain", "a.ex", NOBODY, "1")

    assert ended.status == ExitCode.USAGE
    assert ended.err[0].endswith("; dial wss: or https:, or add --insecure")


@pytest.mark.parametrize(
    "words",
    [
        ("request", "--node", "ws://127.0.0.1:1/link", NOBODY, "1"),
        ("runtime", "--node", "ws://127.0.0.1:1/link", "--name", "ra"),
    ],
)
def test_the_nodes_of_other_domains_are_not_dialled_without_tls(words):
    """SEC-13."""
    url = "ws://10.0.0.7:1/link"

    ended = typed(words[0], "--domain", "a.ex", "--foreign", f"b.ex={url}", *words[1:])

    assert ended.status == ExitCode.USAGE
    assert ended.err[0].startswith(f"protofly: {url} is dialled without TLS")


class Greeter(Hyperty):
    async def on_request(self, message):
        return f"hello {message.body['value']}"


async def test_programs_embed_nodes_and_runtimes_with_tls(certificates):
    """SEC-10."""
    config = NodeConfig(domain="a.ex", tls=certificates.listener)
    async with open_node(config) as node:
        of = partial(RuntimeConfig, domain="a.ex", node=node.url, tls=certificates.dialler)
        async with open_runtime(of(name="alice")) as alice, open_runtime(of(name="bob")) as bob:
            there, here = await bob.deploy(Greeter), await alice.deploy(Greeter)
            answer = await here.request(there.url, "Alice")

    assert (answer.code, answer.body["value"]) == (200, "hello Alice")
