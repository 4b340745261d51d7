"""`deploy/compose.yml`: its commands run as processes of this machine, where there is no Docker."""

import re
import shutil
import subprocess
import time
from contextlib import AsyncExitStack, contextmanager
from urllib.request import urlopen

import orjson
import pytest
import trio

import actors
from actors.dev.environment import LocalLogin
from actors.hyperties import Caller, Echo
from actors.keys.signing import make_domain_key, make_key
from tests.support.command import ROOT, serving
from tests.support.nats_server import PROGRAM, needs_server
from tests.support.ports import free_port
from tests.support.wire.certificates import Certificates
from tests.transports.engine.nats_keys import USER, Key

pytestmark = [pytest.mark.timeout(180), needs_server]

yaml = pytest.importorskip("yaml")
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yml").read_text())
NODES = ["one", "two", "three"]
DOMAIN = "a.example"
HEALTH = "127.0.0.1:8222"


def fill_in(text, values):
    """Return a text with the variables that it requires."""
    return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: values[found[1]], text)


def secrets_in(folder):
    """Write the secrets as an operator does; return the key of logins, and that of the nodes."""
    logins, nodes = make_key("EdDSA"), Key(USER)
    made = Certificates(folder, "127.0.0.1")
    (folder / "engine.seed").write_text(nodes.seed)
    (folder / "domain.key.json").write_bytes(orjson.dumps(make_domain_key(b"1" * 32).private()))
    (folder / "jwks.json").write_bytes(orjson.dumps({"keys": [logins.public()]}))
    shutil.copy(made.cert, folder / "tls-cert.pem")
    shutil.copy(made.key, folder / "tls-key.pem")
    return logins, nodes.public, made


@contextmanager
def nats(folder, values):
    """Run the command of the service `nats` until its health check holds; yield its port."""
    service, port, http = COMPOSE["services"]["nats"], free_port(), f"127.0.0.1:{free_port()}"
    mounts = dict(mount.split(":")[:2] for mount in service["volumes"])
    assert mounts == {"./nats.conf": "/etc/nats/nats.conf", "nats": "/data"}
    options = (DEPLOY / "nats.conf").read_text()
    for inside, outside in ((HEALTH, http), ("/data", str(folder / "data"))):
        assert inside in options
        options = options.replace(inside, outside)
    (folder / "nats.conf").write_text(f'listen: "127.0.0.1:{port}"\n{options}')
    words = [word.replace("/etc/nats", str(folder)) for word in service["command"]]
    environ = {name: fill_in(text, values) for name, text in service["environment"].items()}
    url = service["healthcheck"]["test"][-1].replace(HEALTH, http)
    with subprocess.Popen([PROGRAM, *words], env=environ, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        try:
            while not is_healthy(url):
                assert process.poll() is None
                time.sleep(0.05)
            yield port
        finally:
            process.kill()


def is_healthy(url):
    try:
        with urlopen(url, timeout=2) as answer:  # noqa: S310 - of this machine
            return answer.status == 200
    except OSError:
        return False


def arguments(service, folder, values, port):
    """Return the command of a node, for this machine."""
    files = {name: folder / entry["file"].split("/")[-1] for name, entry in SECRETS.items()}
    places = {"nats:4222": f"127.0.0.1:{port}", "0.0.0.0:8440": "127.0.0.1:0"}
    for word in service["command"]:
        text = fill_in(word, values)
        for inside, outside in places.items():
            text = text.replace(inside, outside)
        name = text.partition("/run/secrets/")[2]
        assert not name or name in service["secrets"]
        yield text.replace(f"/run/secrets/{name}", str(files[name])) if name else text


SECRETS = COMPOSE["secrets"]


def test_each_secret_and_volume_is_declared_and_no_secret_is_kept_with_the_files():
    for name in NODES:
        service = COMPOSE["services"][name]
        assert service["secrets"] == list(SECRETS)
        assert service["depends_on"]["nats"]["condition"] == "service_healthy"
    named = {
        mount.split(":")[0] for each in COMPOSE["services"].values() for mount in each["volumes"]
    }
    assert {name for name in named if "/" not in name} == set(COMPOSE["volumes"])
    assert all(entry["file"].startswith("./secrets/") for entry in SECRETS.values())
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text().split()


async def test_its_three_nodes_are_one_group_and_requests_cross_them(tmp_path):
    logins, public, certificates = secrets_in(tmp_path)
    values = {"DOMAIN": DOMAIN, "NATS_USER": public}
    async with AsyncExitStack() as stack:
        port = stack.enter_context(nats(tmp_path, values))
        log = stack.enter_context((tmp_path / "log").open("w+b"))
        urls = []
        for name in NODES:
            service = COMPOSE["services"][name]
            node = await stack.enter_async_context(
                serving(
                    *arguments(service, tmp_path, values, port),
                    env={"PROTOFLY_NODE_HTTP": "127.0.0.1:0", **service["environment"]},
                    stderr=log,
                )
            )
            urls.append(node.url)
            with trio.fail_after(60):
                ready = f"{node.ready['http_url']}/readyz"
                while not await trio.to_thread.run_sync(is_healthy, ready):  # noqa: ASYNC110
                    await trio.sleep(0.1)
        runtimes = []
        for name, url in (("ra", urls[0]), ("rb", urls[-1])):
            login = LocalLogin(logins, f"user://{DOMAIN}/{name}", DOMAIN)
            config = actors.RuntimeConfig(
                domain=DOMAIN, name=name, node=url, credentials=login, tls=certificates.dialler
            )
            runtimes.append(await stack.enter_async_context(actors.open_runtime(config)))
        echo, caller = await runtimes[1].deploy(Echo), await runtimes[0].deploy(Caller)
        assert (await caller.request(echo.url, "across")).value == "across"
        log.seek(0)
        assert b"no option" not in log.read()  # as it says of a variable
