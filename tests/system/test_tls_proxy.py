"""The TLS proxy of the page for operators, by a real nginx: all of ours reach a node behind it."""

import os
import re
import shutil
import signal
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
import trio

from actors import RuntimeConfig, open_runtime
from actors.cli.group import ExitCode
from actors.hyperties import Echo
from tests.support.command import ROOT, call, serving
from tests.support.ports import free_port
from tests.support.wire.certificates import Certificates

NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(NGINX is None, reason="no nginx; apt-get install nginx-light"),
]

PAGE = Path(ROOT, "docs", "operating.md")
MAIN = """
daemon off;
master_process off;
pid {folder}/pid;
error_log stderr warn;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""


def documented(**parts):
    """Return the server of the page, with places of this machine; each stands there once."""
    (server,) = re.findall(r"```nginx\n(server .*?)```", PAGE.read_text(), re.DOTALL)
    for old, new in {
        "443 ssl": f"127.0.0.1:{parts['port']} ssl",
        "/etc/nginx/node.a.example.pem": parts["cert"],
        "/etc/nginx/node.a.example.key": parts["key"],
        "127.0.0.1:8440": parts["node"],
    }.items():
        assert server.count(old) == 1, old
        server = server.replace(old, str(new))
    return server


@asynccontextmanager
async def proxied(certificates, folder):
    """Run a node on the loopback address, and nginx before it; yield the URL of that."""
    async with serving("node", "--domain", "a.example", "--allow-legacy") as node:
        place, port = node.url.removeprefix("ws://").partition("/")[0], free_port()
        server = documented(port=port, cert=certificates.cert, key=certificates.key, node=place)
        (folder / "nginx.conf").write_text(MAIN.format(folder=folder, server=server))
        command = [NGINX, "-e", "stderr", "-p", folder, "-c", folder / "nginx.conf"]
        with subprocess.Popen(command) as nginx:  # noqa: ASYNC220, S603 - it starts at once
            try:
                await up(nginx, port)
                yield f"wss://localhost:{port}/link"
            finally:
                nginx.send_signal(signal.SIGTERM)


async def up(nginx, port):
    with trio.fail_after(30):
        while True:
            assert nginx.poll() is None, "nginx has ended"
            try:
                stream = await trio.open_tcp_stream("127.0.0.1", port)
            except OSError:
                await trio.sleep(0.05)  # real time: it tries again
            else:
                await stream.aclose()
                return


async def test_commands_and_programs_reach_a_node_behind_the_proxy_of_the_page(tmp_path):
    """SEC-11."""
    certificates = Certificates(tmp_path, "localhost")
    ca = ("--ca", str(certificates.ca))
    async with proxied(certificates, tmp_path) as url:
        node = ("--domain", "a.example", "--node", url, *ca)
        crew = ("--name", "ra", "--hyperty", "echo=actors.hyperties:Echo")
        async with serving("runtime", *node, *crew) as runtime:
            echo = runtime.ready["hyperties"]["echo"]
            asked = await call("request", *node, echo, "7")
            assert (asked.status, asked.err) == (ExitCode.OK, [])
            assert orjson.loads(asked.out[0])["value"] == 7
            config = RuntimeConfig(
                domain="a.example", name="rb", node=url, tls=certificates.dialler
            )
            async with open_runtime(config) as program:
                own = await program.deploy(Echo)
                answer = await own.request(echo, "by a program")
                assert answer.body["value"] == "by a program"
                back = await call("request", *node, own.url, "8")
                assert orjson.loads(back.out[0])["value"] == 8
            assert await runtime.stop() == ExitCode.OK
        untrusted = await call("request", *node[:-2], echo, "7")
        assert untrusted.status == ExitCode.CANNOT_CONNECT
        assert "--ca" in untrusted.err[0]
