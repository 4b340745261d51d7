"""A hyperty greets its callers by name, and says who vouches for the name.

Run it: `python examples/who_calls.py`

Each of two domains has its own identity provider, and its node trusts no other one. The requests
of the caller in the other domain come by both nodes at first: what the greeter is told, the other
domain says. Then they come by a direct link: there the runtimes show each other their login
tokens, which name them and their keys, and the trust file of each names both identity providers.
"""

import json
import tempfile
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import trio

import actors
from actors.keys.key_file import open_key_file
from actors.keys.key_source import KeyFile
from actors.keys.signing import make_key
from actors.node.login.key_provider import by_keys, terms_of
from actors.pipe.process import open_process_sandbox

A, B = "a.example", "b.example"
ISSUERS = f"""
[[issuer]]
name = "{A}"
keys = "{A}.jwks"

[[issuer]]
name = "{B}"
keys = "{B}.jwks"
"""


class Greeter(actors.Hyperty):
    """Greets its callers."""

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Greet a user by name, and a caller for whom nobody vouches by its runtime."""
        caller = message.identity
        if caller is None:
            return "hello, whoever you are"
        if caller.user is None:
            return f"hello, somebody at {caller.runtime}"
        return f"hello, {caller.user} (says the {caller.vouched_by})"


class Caller(actors.Hyperty):
    """Sends requests, and answers none."""


class IdentityProvider:
    """Issues login tokens for one domain.

    Args:
        domain: The domain.
        folder: Where its node finds the public key.
    """

    def __init__(self, domain: str, folder: Path) -> None:
        self._domain = domain
        self._key = make_key("EdDSA")
        self._issued = 0
        self.keys = folder / f"{domain}.jwks"
        self.keys.write_text(json.dumps({"keys": [self._key.public()]}))

    def token(self, user: str, *, node: str | None = None, key: str | None = None) -> str:
        """Issue a token that opens one session: of the user's runtime, or of a domain's node.

        A provider has to make sure that the runtime is the user's: each of these users has one, of
        his own name.
        """
        now, self._issued = time.time_ns() // 1_000_000_000, self._issued + 1
        claims: actors.JsonObject = {
            "iss": self._domain,
            "sub": f"user://{node or self._domain}/{user}",
            "aud": self._domain,
            "iat": now,
            "exp": now + 60,
            "jti": str(self._issued),
            "runtime": f"hyperty-runtime://{self._domain}/{user}",
        }
        if node is not None:
            claims["runtime"] = f"domain://msg-node.{node}"
        if key is not None:
            claims["cnf"] = {"jkt": key}
        return self._key.signed(claims)


async def main() -> None:
    """Call the greeter from its own domain, and from the other one."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        providers = {domain: IdentityProvider(domain, folder) for domain in (A, B)}
        nodes = await open_nodes(stack, providers)
        trust = folder / "trust.toml"
        trust.write_text(ISSUERS)

        async def log_in(domain: str, user: str) -> actors.Runtime:
            key = folder / f"{user}.key"
            token = providers[domain].token(user, key=open_key_file(key).thumbprint)
            config = actors.RuntimeConfig(
                domain=domain,
                name=user,
                node=nodes[domain],
                credentials=actors.GivenToken(token),
                identity=key,
                trust=actors.read_trust(trust),
                p2p_require=actors.VouchedBy.IDENTITY_PROVIDER,
                topology=actors.Topology.TRAPEZOID,
                kinds=(actors.Kind.TCP,),
            )
            return await stack.enter_async_context(actors.open_runtime(config))

        home, far = await log_in(B, "bob"), await log_in(A, "alice")
        greeter, bob = await home.deploy(Greeter), await home.deploy(Caller)
        alice = await far.deploy(Caller)
        print("bob, at home:       ", (await bob.request(greeter.url)).value)
        print("alice, by the nodes:", (await alice.request(greeter.url)).value)
        print("alice, by the link: ", (await by_link(alice, greeter.url)).value)


async def by_link(caller: actors.Deployed, to: str) -> actors.Message:
    """Send requests until one takes the direct link that the first one asked for."""
    while True:
        answer = await caller.request(to)
        if any("/p2prequester/" in stub for stub in answer.via):
            return answer


async def open_nodes(
    stack: AsyncExitStack, providers: dict[str, IdentityProvider]
) -> dict[str, str]:
    """Open a node for each domain, each of which logs in at the other one; return their URLs."""
    nodes: dict[str, str] = {}
    routes: dict[str, dict[str, actors.Endpoint]] = {A: {}, B: {}}
    for domain, provider in providers.items():
        config = actors.NodeConfig(
            domain=domain,
            login=actors.Login(provider=by_keys(KeyFile(provider.keys), terms_of(domain))),
            foreign=actors.ForeignPlan(routes[domain], open_process_sandbox),
        )
        nodes[domain] = (await stack.enter_async_context(actors.open_node(config))).url
    for domain, other in ((A, B), (B, A)):
        token = partial(node_token, providers[other], domain)
        routes[domain][other] = actors.Endpoint(nodes[other], token)
    return nodes


async def node_token(provider: IdentityProvider, domain: str) -> str:
    """Issue a token for the node of the other domain."""
    return provider.token("node", node=domain)


if __name__ == "__main__":
    trio.run(main)
