"""Tokens in the shapes of identity providers, made by PyJWT and by `jose` of npm.

`tests/fixtures/sign-provider-tokens.mjs` made those of `jose`.
"""

import json
from pathlib import Path

import jwt

FIXTURES = Path(__file__).parents[3] / "fixtures"
SHAPES = json.loads((FIXTURES / "provider-tokens.json").read_text())
BY_NAME = {one["name"]: one for one in SHAPES["tokens"]}
BY_JOSE = json.loads((FIXTURES / "provider-tokens-jose.json").read_text())


def test_jose_has_signed_each_shape_as_it_stands():
    for name, shape in BY_NAME.items():
        token = BY_JOSE[name]["token"]
        assert jwt.get_unverified_header(token) == shape["header"]
        assert jwt.decode(token, options={"verify_signature": False}) == shape["claims"]
