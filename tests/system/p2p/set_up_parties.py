"""Who takes part in a set-up: runtimes here, processes there, and who gives them tokens."""

import time
from pathlib import Path
from typing import TypeAlias

import attrs
import trio
from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.runtime import Runtime
from actors.runtime.stubs.credentials import Credentials
from tests.support.command import Serving
from tests.support.node.issuer import Issuer
from tests.support.trace.awaitable_tracer import AwaitableTracer
from tests.system.harmed import PATIENCE

DOMAIN = "a.example"


@attrs.define
class TokenIssuer(Credentials):
    """Gives whoever is of the domain a fresh token; a token opens one session."""

    folder: Path
    issuer: Issuer = attrs.field(factory=lambda: Issuer(domain=DOMAIN))

    @override
    async def token(self, audience: str) -> str:
        await trio.lowlevel.checkpoint()
        self.issuer.now = real_time()
        return self.issuer.token()

    async def file(self) -> Path:
        """Write a fresh token where a process looks for it."""
        token = self.folder / "token"
        token.write_text(await self.token(""))
        return token

    @property
    def keys(self) -> Path:
        keys = self.folder / "keys.json"
        keys.write_bytes(self.issuer.jwks())
        return keys


def real_time() -> float:
    return time.time_ns() / 1e9


@attrs.define
class Here:
    """A runtime in this process."""

    runtime: Runtime
    tracer: AwaitableTracer
    hyperty: Hyperty
    address: str

    async def status(self, other: str) -> str | None:
        """What its table says of the link to another runtime."""
        rows = {entry.remote: entry.status.value for entry in await self.runtime.links()}
        return rows.get(f"hyperty-runtime://{DOMAIN}/{other}")

    async def wait_while(self, other: str, statuses: set[str | None]) -> None:
        """Wait until its table says something else of the link."""

        async def has_changed() -> bool:
            return await self.status(other) not in statuses

        with trio.fail_after(PATIENCE):
            await self.tracer.until(has_changed)


@attrs.define
class There:
    """A process."""

    serving: Serving

    @property
    def address(self) -> str:
        hyperties = self.serving.ready["hyperties"]
        assert isinstance(hyperties, dict)
        return str(hyperties["it"])


Party: TypeAlias = Here | There
