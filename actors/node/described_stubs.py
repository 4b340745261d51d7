"""Find the stubs for other domains by the descriptors in their catalogues (MN-19, CAT-03, S16).

The descriptor is fetched, verified and judged for each deployment, so that a new version is used at
the next deployment. A profile names a stub that ships with the node (`websocket`). A package
contains code of the domain. Both run in a sandbox process.
"""

import attrs

from actors.catalogue.client import CatalogueAccess, CatalogueClient, Found
from actors.catalogue.errors import CatalogueFileError, RefusedDescriptorError
from actors.kit.guarded_network import GuardedNetwork
from actors.kit.http_client import PlainUrlError, check_plain, dial_public
from actors.pipe.plan import NODE_STUB, Contents, ContentsKind, TokenSource, nothing
from fsm.catalogue.descriptor import Here, Level, Reach
from fsm.machine_list import MACHINES, fingerprints
from specs.addresses.address import catalogue_stub, read_entry
from specs.descriptor import StubDescriptor
from specs.errors import BadUrlError
from transports.link import Network


@attrs.frozen
class ForeignStub:
    """Stub for another domain that passed all checks: endpoints, network and code.

    Attributes:
        endpoints: The only addresses that the stub may dial.
        network: Dials the endpoints, if descriptors of the domain may name them.
        contents: The stub of Protofly, or the code of a package.
        archive: The archive with the code; empty for the stub of Protofly.
        login: Returns the token that opens a session.
    """

    endpoints: tuple[str, ...]
    network: Network
    contents: Contents = NODE_STUB
    archive: bytes = attrs.field(default=b"", repr=False)
    login: TokenSource = nothing


class DescribedStubs:
    """Find and verify the stubs for other domains by their catalogues.

    Args:
        access: Catalogues and trusted signers.
    """

    def __init__(self, access: CatalogueAccess) -> None:
        machines = frozenset(fingerprints(MACHINES.values()))
        # The node can run one stub of its own.
        here = Here(frozenset({"websocket"}), machines, frozenset(Level))
        self._client = CatalogueClient(
            access.places, access.trust, here, access.store, access.clock_offset
        )

    async def find(self, domain: str, network: Network) -> ForeignStub | str:
        """Return the verified stub for a domain, or half a sentence about why no stub can be used.

        If cancelled, files that were fetched and accepted so far may be kept.

        Args:
            domain: The domain.
            network: Dials for the stub.

        If cancelled, files that were fetched and accepted so far may be kept.
        """
        try:
            entry, _ = read_entry(catalogue_stub(domain))
            return _make_stub(await self._client.find(entry), network)
        except (BadUrlError, RefusedDescriptorError, CatalogueFileError) as exc:
            return str(exc)
        except PlainUrlError as exc:
            return f"its endpoint {exc.url[:80]!r} is on another machine and without TLS"


def _make_stub(lookup: Found[StubDescriptor], network: Network) -> ForeignStub:
    """Make the stub that a verified descriptor describes.

    Raises:
        PlainUrlError: The stub would dial another machine without TLS.
    """
    descriptor, package = lookup.descriptor, lookup.descriptor.source_package
    options = descriptor.configuration or {}
    guarded = GuardedNetwork(network, dial_public) if lookup.reach is Reach.PUBLIC else network
    if lookup.package is not None and package is not None:
        contents = Contents(ContentsKind.PACKAGE, package.entry_point, options)
        stub = ForeignStub(descriptor.endpoints, guarded, contents, lookup.package)
    else:
        endpoint = None if descriptor.profile is None else descriptor.profile.endpoint
        stub = ForeignStub(() if endpoint is None else (endpoint,), guarded)
    check_plain(stub.endpoints, network=network, insecure=False)
    return stub
