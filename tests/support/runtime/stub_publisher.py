"""A person who signs and publishes stubs by commands, and what is seen of that."""

import json

from actors.cli.group import ExitCode
from actors.commands.stub import publish, sign, verify
from actors.commands.token import make_keys as keys
from tests.support.catalogues import ENTRY_POINT, sources
from tests.support.command import called

DRAFT = {
    "profile": {"stub": "websocket", "endpoint": "wss://node.b.example:4123/link"},
    "description": "the node of b",
    "mine": {"kept": True},
}
ENTRY = ".well-known/protocolstub/default"


class StubPublisher:
    """A person of b.example with a key, a draft and a directory to publish in."""

    def __init__(self, folder):
        self.folder = folder
        self.catalogue = folder / "catalogue"
        self.write("draft.json", DRAFT)
        self.write("old.json", {**DRAFT, "counter": 5, "expires": 1_700_000_000})
        self.write("code.json", {"endpoints": ["stream://chat.b.example:5000"]})
        self.key = self.made("b1")

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def made(self, kid, folder="keys"):
        out = str(self.folder / folder)
        return json.loads(called(keys, "--out", out, "--kid", kid).out[0])

    def sign(self, *more, draft="draft.json", out="d.jws", key=None):
        where = ("--domain", "b.example", "--key", (key or self.key)["key"])
        out = ("--out", str(self.folder / out))
        return called(sign, str(self.folder / draft), *where, *out, *more)

    def publish(self, *more, file="d.jws"):
        return called(publish, str(self.folder / file), "--into", str(self.catalogue), *more)

    def published(self, *more):
        """Sign and publish, as it should be."""
        assert self.sign(*more).status == ExitCode.OK
        done = self.publish("--keys", self.key["jwks"])
        assert done.status == ExitCode.OK, done.err
        return json.loads(done.out[0])

    def package(self, *more, draft="code.json"):
        self.acme = self.made("acme", "acme")
        return self.sign(
            "--package", str(sources(self.folder / "code")), "--entry-point", ENTRY_POINT,
            "--publisher", "acme", "--publisher-key", self.acme["key"],
            "--machine", "stub_connection", *more, draft=draft,
        )  # fmt: skip

    def trust(self, more=""):
        text = f'[domains."b.example"]\nkeys = "keys/jwks.json"\n{more}'
        return self.write("trust.toml", text)

    def verify(self, *more, where=None):
        return called(verify, where or str(self.catalogue / ENTRY), *more)


def checks(done):
    lines = [json.loads(line) for line in done.out]
    return [(one["check"], one["passed"]) for one in lines if one["schema"].endswith("check/1")]


def refused(done, said, status=ExitCode.REFUSED):
    assert (done.status, len(done.err)) == (status, 1), done.err
    assert done.err[0].startswith("protofly: ")
    assert said in done.err[0]
