"""How often tests try what chance makes: by the profile of hypothesis, which `conftest` names."""

from hypothesis import settings

_USUAL = 50
"""What hypothesis tries where nothing else is said."""


def examples(by_default: int) -> int:
    """Return how many examples there are to be: so many in `make test`, more in `make soak`."""
    return by_default * settings.default.max_examples // _USUAL
