"""Alice calls Bob, and runs what his domain has published in her own runtime.

Run it: `python examples/hosted_by_caller/call.py`

`package/receptionist.py` is code of bob.example. Alice's runtime fetches it from the catalogue of
that domain when she calls, verifies the signatures, and runs it in a process without network and
files. No node of bob.example is needed. A policy of Alice's runtime lets it answer, and nothing
else.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

import actors

PACKAGE = Path(__file__).with_name("package")
RECEPTIONIST = "hyperty-catalogue://catalogue.bob.example/.well-known/hyperty/receptionist"
TRUST = """\
[domains."bob.example"]
keys = "domain/jwks.json"
publishers = ["bob"]
reach = "anywhere"

[publishers.bob]
keys = "bob/jwks.json"
"""


class Alice(actors.Hyperty):
    """Calls."""


class Diary(actors.Hyperty):
    """Private: belongs to Alice."""

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Write it down."""
        return f"written down: {message.value}"


class AnswersOnly(actors.Policy):
    """Lets guests answer, and nothing else."""

    def __init__(self) -> None:
        self.guests: set[str] = set()

    def refusal(self, message: actors.Message, by: str) -> str | None:
        """Return the reason of a refusal; None: the message is permitted."""
        del by
        is_question = message.from_ in self.guests and not message.is_response
        return "a guest only answers" if is_question else None


def protofly(*arguments: str | Path) -> None:
    """Run a command of protofly; the command itself prints its errors."""
    command = [sys.executable, "-m", "actors", *map(str, arguments)]
    if status := subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
        sys.exit(status)


def publish(folder: Path) -> None:
    """Publish the package like the operator of bob.example: sign it, put it into a catalogue."""
    for signer in ("domain", "bob"):
        protofly("token", "keys", "--kid", signer, "--out", folder / signer)
    draft, signed = folder / "draft.json", folder / "signed.jws"
    draft.write_text(json.dumps({"configuration": {"greeting": "Bob is away."}}))
    protofly(
        *("stub", "sign", draft, "--out", signed, "--entry", "hyperty/receptionist"),
        *("--domain", "bob.example", "--key", folder / "domain" / "domain.key.json"),
        *("--package", PACKAGE, "--entry-point", "receptionist:Receptionist"),
        *("--publisher", "bob", "--publisher-key", folder / "bob" / "bob.key.json"),
    )
    keys = folder / "domain" / "jwks.json"
    protofly("stub", "publish", signed, "--keys", keys, "--into", folder / "catalogue")
    (folder / "trust.toml").write_text(TRUST)


async def main(folder: Path) -> None:
    """Load the receptionist, and talk to it."""
    access = actors.CatalogueAccess(
        actors.read_places([f"bob.example={folder / 'catalogue'}"]),
        actors.read_trust(folder / "trust.toml"),
    )
    policy = AnswersOnly()
    async with actors.open_node("alice.example") as node:
        config = actors.RuntimeConfig(
            domain="alice.example", name="desk", node=node.url, catalogues=access, policy=policy
        )
        async with actors.open_runtime(config) as runtime:
            alice, diary = await runtime.deploy(Alice), await runtime.deploy(Diary)
            guest = await runtime.load(RECEPTIONIST)
            policy.guests.add(guest.url)
            for said in ("Call me back", "It is about lunch", f"gossip to {diary.url}"):
                answer = await alice.request(guest.url, said)
                print(answer.code, answer.value)


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        publish(Path(place))
        trio.run(main, Path(place))
