"""What signatures are made and verified by: two algorithms, and no other (RFC 8725, 3.1)."""

from types import MappingProxyType
from typing import Final, final

from joserfc.errors import UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jws import JWSRegistry
from typing_extensions import override

__all__ = ["ALGORITHMS", "EDDSA", "REGISTRY"]

EDDSA: Final = "EdDSA"

ALGORITHMS: Final = MappingProxyType({("OKP", "Ed25519"): EDDSA, ("EC", "P-256"): "ES256"})
"""By type and curve of a key, the one algorithm it is used with; no others are taken."""

_TAKEN: Final = frozenset(ALGORITHMS.values())


@final
class _Registry(JWSRegistry):
    """Knows two algorithms.

    The library warns of `EdDSA` because newer documents write `Ed25519` for the same
    thing (RFC 9864); issuers go on writing what RFC 8037 says.
    """

    @override
    def get_alg(self, name: str) -> JWSAlgModel:
        if name not in _TAKEN:
            raise UnsupportedAlgorithmError(name)
        return self.algorithms[name]


REGISTRY: Final = _Registry()
"""What the library is told to sign and verify by."""
