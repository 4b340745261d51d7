"""Bodies of what a node connects to: identities, the global registry, quality (M-55..M-58)."""

import attrs

from specs.jsonvalue import JsonObject
from specs.schema.field import Address, Filled, checked, wire


@attrs.frozen(slots=True, field_transformer=checked)
class IdentityCall:
    """Call a method of an identity provider (M-55).

    Attributes:
        method: `validateAssertion`, `generateAssertion`, `getLoginEndpoint` or others.
        params: Arguments, as the provider names them.
    """

    method: Filled
    params: JsonObject = attrs.field(factory=dict)


@attrs.frozen(slots=True, field_transformer=checked)
class GlobalRecord:
    """Publish a signed record of a user (M-57).

    Attributes:
        resource: The user's global address.
        value: The record, as a JSON Web Token.
    """

    resource: Address
    value: Filled


@attrs.frozen(slots=True, field_transformer=checked)
class QualityWish:
    """For whom network resources are reserved, and for what (C-60)."""

    csp_id: Filled = attrs.field(metadata=wire("cspId"))
    media_type: Filled = attrs.field(metadata=wire("mediaType"))
    client_name: Filled = attrs.field(metadata=wire("clientName"))


@attrs.frozen(slots=True, field_transformer=checked)
class AskQuality:
    """Ask for network resources (M-58)."""

    value: QualityWish


@attrs.frozen(slots=True, field_transformer=checked)
class TurnServer:
    """A relay, and what opens it (M-58)."""

    turn: Filled
    username: Filled
    credential: Filled
