"""Options for dialling nodes with TLS, and the refusal of plain connections over a network."""

import ssl
from collections.abc import Iterable
from functools import wraps
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import click
import structlog

from actors.cli.command_error import CommandError, ExitCode
from actors.cli.options import Handler
from transports.tls import TlsFileError, client_context
from transports.urls import read_websocket_url

__all__ = ["FILE", "check_plain", "client_tls", "client_tls_options", "insecure_option"]

_log = structlog.get_logger("actors.cli")

FILE: Final = click.Path(dir_okay=False, path_type=Path)
"""The type of an option that names a file; whether it can be used is found out later."""

insecure_option = click.option(
    "--insecure",
    is_flag=True,
    help="Dial nodes on other machines without TLS: others can read and alter messages.",
)
"""The option `--insecure`."""

_ca_option = click.option(
    "--ca",
    metavar="FILE",
    type=FILE,
    help="Trust the authorities in this PEM file when nodes are dialled by wss: "
    "[default: those of the operating system].",
)
_cert_option = click.option(
    "--tls-cert",
    metavar="FILE",
    type=FILE,
    help="Show the certificate in this PEM file to a node that asks for one.",
)
_key_option = click.option(
    "--tls-key", metavar="FILE", type=FILE, help="PEM file with the private key of --tls-cert."
)


def client_tls(
    ca: Path | None, cert: Path | None = None, key: Path | None = None
) -> ssl.SSLContext | None:
    """Return what nodes are dialled with; None: as the operating system has it.

    Args:
        ca: PEM file of the authorities that are trusted.
        cert: PEM file of the certificate to show.
        key: PEM file of its key.

    Raises:
        CommandError: A file cannot be used, or one of two is missing.
    """
    if (cert is None) is not (key is None):
        raise CommandError("--tls-cert and --tls-key go together; add the other one")
    if ca is None and cert is None:
        return None
    try:
        return client_context(ca, cert, key)
    except TlsFileError as exc:
        raise CommandError(str(exc)) from exc


def check_plain(urls: Iterable[str], *, insecure: bool) -> None:
    """Refuse nodes on other machines that are dialled without TLS.

    Args:
        urls: What is dialled.
        insecure: Whether that is wanted; then a warning is logged.

    Raises:
        CommandError: It is not.
    """
    for url in urls:
        read = read_websocket_url(url)
        if read.scheme == "wss" or _is_here(read.host):
            continue
        if not insecure:
            raise CommandError(
                f"{url} is dialled without TLS, so others can read and alter messages; "
                "dial wss:, or add --insecure",
                ExitCode.USAGE,
            )
        _log.warning("a node is dialled without TLS", url=url)


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def client_tls_options(command: Handler) -> Handler:
    """Add the options for dialling nodes with TLS; the command gets `tls`."""

    @wraps(command)
    def secured(  # noqa: PLR0913 - one for each option
        *,
        ca: Path | None,
        tls_cert: Path | None,
        tls_key: Path | None,
        insecure: bool,
        node: str,
        foreign: dict[str, str],
        **values: object,
    ) -> int:
        check_plain([node, *foreign.values()], insecure=insecure)
        tls = client_tls(ca, tls_cert, tls_key)
        return command(node=node, foreign=foreign, tls=tls, **values)

    return _ca_option(_cert_option(_key_option(insecure_option(secured))))
