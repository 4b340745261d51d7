"""Secrets of a whole system: who may read their files, and that nothing else shows them."""

import json
import os
import re
import sqlite3
import stat
from contextlib import AsyncExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trio

from actors.cli.group import ExitCode
from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from tests.support.command import call, called, serving
from tests.support.wire.certificates import Certificates

pytestmark = pytest.mark.timeout(180)

DOMAIN = ("--domain", "a.example")
HTTP_TOKEN = "a-token-of-the-metrics-that-nobody-shows"  # noqa: S105 - it is looked for

KEY = ".store-identity"
"""What the file of a runtime's key is called, after the name of its store."""


class System:
    """A node with logins, TLS, HTTP and files, and commands at it; all write into one folder."""

    def __init__(self, folder):
        self.folder = folder
        self.secrets = [HTTP_TOKEN]
        self.certificates = Certificates(folder)
        (folder / "http-token").write_text(HTTP_TOKEN)
        self.made = folder / "made"
        self.made.mkdir(0o700)
        self.key = json.loads(called(keys, "--out", str(self.made / "keys")).out[0])
        self.secrets.append(json.loads(Path(self.key["key"]).read_text())["d"])
        pem = self.certificates.key.read_text().splitlines()
        self.secrets += pem[1:3]
        self.said = []
        self.logs = []

    def token(self, user):
        """Issue a token into a file; return the options that name it."""
        file = self.folder / f"{user}.token"
        who = ("--key", self.key["key"], "--user", f"user://a.example/{user}")
        (text,) = called(issue, *who, *DOMAIN).out
        file.write_text(text)
        self.secrets.append(text)
        return "--token-file", str(file)

    def node(self):
        tls = ("--tls-cert", self.certificates.cert, "--tls-key", self.certificates.key)
        files = {
            "--jwks": self.key["jwks"],
            "--http-token-file": self.folder / "http-token",
            "--registry": self.made / "registry",
            "--state": self.made / "state",
            "--used-tokens": self.made / "used",
            "--domain-key": self.key["key"],
        }
        named = [str(one) for pair in files.items() for one in pair]
        http = ("--http", "127.0.0.1:0", "--rest")
        return ("node", *DOMAIN, *map(str, tls), *named, *http, *self.evidence())

    def evidence(self):
        return "--trace", str(self.made / "traces"), "--trace-bodies", "--log", "debug"

    def runtime(self, name, url, *more):
        by = ("--node", url, "--ca", str(self.certificates.ca), "--name", name)
        store = ("--store", str(self.made / f"{name}.store"))
        return ("runtime", *DOMAIN, *by, *store, *self.token(name), *self.evidence(), *more)

    async def serve(self, stack, *command):
        log = stack.enter_context((self.folder / f"log{len(self.logs)}").open("w+b"))
        self.logs.append(log)
        service = await stack.enter_async_context(serving(*command, stderr=log))
        self.said.append(json.dumps(service.ready))
        return service

    async def ask(self, url, to, value, token):
        by = ("--node", url, "--ca", str(self.certificates.ca))
        done = await call("request", *DOMAIN, *by, *token, "--log", "debug", to, value)
        self.said += [*done.out, *done.err]
        return done

    def sessions(self):
        """Note the session tokens and keys of runtimes, which they keep in files."""
        for name in ("ra", "rb"):
            self.secrets.append(json.loads((self.made / f"{name}{KEY}").read_text())["d"])
            with closing(sqlite3.connect(self.made / f"{name}.store")) as store:
                tokens = [text for (text,) in store.execute("SELECT token FROM session")]
            assert tokens
            self.secrets += tokens

    async def metrics(self, url):
        place = urlsplit(url)
        stream = await trio.open_tcp_stream(place.hostname, place.port)
        async with stream:
            head = f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {HTTP_TOKEN}\r\n"
            await stream.send_all(f"{head}Connection: close\r\n\r\n".encode())
            text = b"".join([part async for part in stream]).decode()
        assert " 200 " in text.splitlines()[0]
        self.said.append(text)

    def shown(self):
        """Everything that anybody but the owner of a file may get to see, by where it is."""
        yield "outputs", "\n".join(self.said)
        for log in self.logs:
            yield log.name, Path(log.name).read_text()
        for file in self.files():
            if not file.name.endswith((".key.json", ".store", ".store-wal", KEY)):
                yield str(file), file.read_bytes().decode(errors="replace")

    def files(self):
        return [one for one in self.made.rglob("*") if one.is_file()]


def processes(*ids):
    """The command lines and titles of processes, and of their children."""
    for pid in ids:
        folder = Path(f"/proc/{pid}")
        children = (folder / f"task/{pid}/children").read_text().split()
        for one in (folder, *(Path(f"/proc/{child}") for child in children)):
            yield (one / "cmdline").read_text() + (one / "comm").read_text()


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


async def work(system):
    """Have everything done once that takes a secret; then end all of it."""
    async with AsyncExitStack() as stack:
        node = await system.serve(stack, *system.node())
        crew = ("--hyperty", "echo=actors.hyperties:Echo", "--sandbox", "process")
        ra = await system.serve(stack, *system.runtime("ra", node.url, *crew))
        rough = ("--hyperty", "rough=tests.support.runtime.rough:Rough")
        rb = await system.serve(stack, *system.runtime("rb", node.url, *rough))
        token, to = system.token("asker"), rb.ready["hyperties"]["rough"]
        # That has the runtimes set up a link, which takes secrets, too.
        far = json.dumps({"ask": ra.ready["hyperties"]["echo"], "value": 7})
        done = await system.ask(node.url, to, far, token)
        assert json.loads(done.out[0])["value"] == {"code": 200, "value": 7}
        refused = await system.ask(node.url, to, "1", token)
        assert refused.status == ExitCode.REFUSED
        await system.metrics(node.ready["http_url"])
        system.said += processes(*(one.process.pid for one in (node, ra, rb)))
        system.sessions()
        for one in (rb, ra, node):
            assert await one.stop() == ExitCode.OK


async def test_secrets_are_in_files_of_their_owner_and_nowhere_else(tmp_path):
    """SEC-40, SEC-41."""
    system = System(tmp_path)
    before = os.umask(0o022)
    try:
        await work(system)
    finally:
        os.umask(before)

    shown = dict(system.shown())
    found = [(where, one) for where, text in shown.items() for one in system.secrets if one in text]
    assert found == []
    traces = "".join(text for where, text in shown.items() if "/traces/" in where)
    assert '"machine":"p2p_connection"' in traces
    # Secrets of links, and what keys sign, are not known here; no field that may have one is
    # there with its value.
    fields = re.findall(r'"(?:secret|token|sessionToken|proof|challenge)":"([^"]*)"', traces)
    assert set(fields) <= {"..."}

    open_files = [one.name for one in system.files() if mode_of(one) & 0o077]
    assert open_files == ["jwks.json"]
    assert {mode_of(one) for one in system.made.rglob("*") if one.is_dir()} == {0o700}
    names = {one.name for one in system.files()}
    assert names >= {"registry", "state", "used", "ra.store", "rb.store", f"ra{KEY}", f"rb{KEY}"}
