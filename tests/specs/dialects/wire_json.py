"""Hypothesis strategies for what may come by the wire."""

from hypothesis import strategies as st

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)

ADDRESSES = st.sampled_from(
    [
        "hyperty://a.ex/ha",
        "runtime://a.ex/ra/sm",
        "RUNTIME://A.ex/ra/registry/",
        "hyperty-runtime://b.ex/rb/p2phandler/1",
        "hyperty-runtime://b.ex/rb/p2phandler/1/status",
        "domain://msg-node.a.ex/sm",
        "domain://msg-node.a.ex/object-address-allocation",
        "domain://msg-node.a.ex/address-allocation",
        "domain://registry.a.ex",
        "comm://a.ex/o1",
        "comm://a.ex/o1/resources/child",
        "comm://a.ex/o1/children/resources",
        "comm://a.ex/o1/changes",
        "hyperty://a.ex/ha/registration",
    ]
)
TYPES = st.sampled_from(
    ["create", "READ", "Update", "delete", "SUBSCRIBE", "unsubscribe", "execute", "forward"]
)
IDS = st.integers(1, 2**53 - 1) | st.integers(1, 10**9).map(str)
LISTS = ADDRESSES | st.lists(ADDRESSES, max_size=3)
KNOWN = {
    "via": LISTS,
    "source": ADDRESSES,
    "subscriber": ADDRESSES,
    "desc": st.text(max_size=5),
    "description": st.text(max_size=5),
    "resources": LISTS,
    "subscribe": LISTS,
    "resource": ADDRESSES | st.text(max_size=5),
    "childrenResources": st.lists(st.sampled_from(["resources", "x"]) | ADDRESSES, max_size=3),
    "value": st.sampled_from(["LIVE", "connected", "x"])
    | st.fixed_dictionaries({"allocationKey": st.text(max_size=3)})
    | JSON,
    "attribute": st.sampled_from(["status", "x"]),
}
UNKNOWN = st.dictionaries(st.from_regex(r"x-[a-z]{1,5}", fullmatch=True), JSON, max_size=2)
BODIES = st.builds(
    lambda known, unknown: {**known, **unknown},
    st.fixed_dictionaries({}, optional=KNOWN),
    UNKNOWN,
)
REQUESTS = st.fixed_dictionaries(
    {"id": IDS, "type": TYPES, "from": ADDRESSES, "to": ADDRESSES, "body": BODIES}
)
CODES = st.sampled_from([100, 200, 404, "200", "2XX", "1XX", "error"])
ANSWERS = st.builds(
    lambda request, code: {
        **request,
        "type": "response",
        "body": {**request["body"], "code": code},
    },
    REQUESTS,
    CODES,
)
WIRE = REQUESTS | ANSWERS
"""Messages as peers may spell them; some of them ambiguous."""

MANGLED = st.dictionaries(
    st.sampled_from(["id", "type", "from", "to", "body"]) | st.text(), JSON | LISTS | IDS | TYPES
)
"""Objects that look like messages, most of them none."""
