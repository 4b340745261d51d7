"""Options of TLS: the certificates of the listeners, and what is trusted when nodes are dialled."""

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import final

import attrs
from typing_extensions import override

from actors.cli.group import CommandError
from actors.cli.options import (
    FILE_OPTION,
    Topic,
    check_plain,
    client_tls,
    insecure_option,
    open_key,
    option,
    wrong_file,
)
from actors.cli.reloading import ReloadableOptions
from actors.keys.certificate import out_of_time
from actors.node.config import NodeConfig
from transports.tls import TlsFileError, is_open_to_others, load_identity, server_context


@final
@attrs.frozen(kw_only=True)
class TlsOptions(Topic):
    """The certificates of the listeners, and what is trusted when nodes are dialled."""

    tls_cert: Path | None = option(
        **FILE_OPTION,
        help="Serve stubs with TLS, by wss:, and show the certificates in this PEM file, which is "
        "read again at SIGHUP.",
    )
    tls_key: Path | None = option(
        **FILE_OPTION, help="PEM file with the private key of --tls-cert."
    )
    tls_client_ca: Path | None = option(
        **FILE_OPTION,
        help="Only peers with a certificate of an authority in this PEM file may connect.",
    )
    http_tls_cert: Path | None = option(
        **FILE_OPTION, help="The same as --tls-cert, for the address of --http."
    )
    http_tls_key: Path | None = option(
        **FILE_OPTION, help="PEM file with the private key of --http-tls-cert."
    )
    ca: Path | None = option(
        **FILE_OPTION,
        help="Trust the authorities in this PEM file when nodes are dialled by wss: "
        "[default: those of the operating system].",
    )
    insecure: bool = option(insecure_option)

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        check_plain((one.url for one in config.foreign.domains.values()), insecure=self.insecure)
        stubs = _pair("--tls", self.tls_cert, self.tls_key)
        http = _pair("--http-tls", self.http_tls_cert, self.http_tls_key)
        if stubs is None and self.tls_client_ca is not None:
            raise CommandError("--tls-client-ca needs a listener with TLS; add --tls-cert")
        if http is not None and config.http is None:
            raise CommandError("--http-tls-cert is of no listener; add --http")
        try:
            if stubs is not None:
                config = attrs.evolve(config, tls=server_context(*stubs, self.tls_client_ca))
            if http is not None and config.http is not None:
                shown = attrs.evolve(config.http, tls=server_context(*http))
                config = attrs.evolve(config, http=shown)
        except TlsFileError as exc:
            raise wrong_file(
                exc,
                {
                    "--tls-cert": self.tls_cert,
                    "--tls-key": self.tls_key,
                    "--tls-client-ca": self.tls_client_ca,
                    "--http-tls-cert": self.http_tls_cert,
                    "--http-tls-key": self.http_tls_key,
                },
            ) from exc
        keys = [pair[1] for pair in (stubs, http) if pair is not None]
        remarks = [open_key(key) for key in keys if is_open_to_others(key)]
        remarks += [f"{why}; peers will not accept it" for why in self.out_of_time()]
        return attrs.evolve(
            config,
            client_tls=client_tls(self.ca),
            insecure=self.insecure,
            remarks=(*config.remarks, *remarks),
        )

    def out_of_time(self) -> list[str]:
        """Return which certificates of the listeners are not good now, and why; after `applied`."""
        now = datetime.now(UTC)
        files = [one for one in (self.tls_cert, self.http_tls_cert) if one is not None]
        return [why for file in files if (why := out_of_time(file, now))]

    def check_times(self) -> None:
        """Refuse certificates of the listeners that are not good now; after `applied`.

        Raises:
            CommandError: One is not.
        """
        for why in self.out_of_time():
            raise CommandError(f"{why}; renew it")

    def certificates(self, config: NodeConfig) -> list["Certificate"]:
        """Return the certificates of the listeners of a node, which can be read again.

        Args:
            config: Configuration of the node, after `applied`.
        """
        http = None if config.http is None else config.http.tls
        shown = (
            ("", config.tls, self.tls_cert, self.tls_key),
            ("http_", http, self.http_tls_cert, self.http_tls_key),
        )
        return [
            Certificate(f"{prefix}tls_", context, cert, key)
            for prefix, context, cert, key in shown
            if context is not None and cert is not None and key is not None
        ]


@final
@attrs.define
class Certificate:
    """The certificate of a listener.

    Attributes:
        prefix: Begin of the names of its two options, such as `tls_`.
        context: The context that shows it.
        cert: File of the certificate.
        key: File of its private key.
    """

    prefix: str
    context: ssl.SSLContext
    cert: Path
    key: Path

    def reread(self) -> None:
        """Show what is in the files now.

        Raises:
            TlsFileError: They cannot be used; what was shown before is still shown.
        """
        load_identity(self.context, self.cert, self.key)

    @property
    def takes(self) -> ReloadableOptions:
        """The options of the files, which can change while the node runs."""
        return ReloadableOptions(frozenset({f"{self.prefix}cert", f"{self.prefix}key"}), self._take)

    def _take(self, values: Mapping[str, object]) -> bool:
        cert, key = (values[f"{self.prefix}{end}"] for end in ("cert", "key"))
        if not isinstance(cert, Path) or not isinstance(key, Path):
            return False
        load_identity(self.context, cert, key)
        self.cert, self.key = cert, key
        return True


def _pair(name: str, cert: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise CommandError(f"{name}-cert and {name}-key go together; add the other one")
    return cert, key
