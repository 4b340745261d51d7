"""What goes wrong between a runtime and its session over HTTP."""

from typing import final

from specs.errors import ProtoflyError

__all__ = ["NewerPollError", "PostNumberError", "PostsPileUpError", "RestGoneError"]


@final
class NewerPollError(ProtoflyError):
    """A newer request waits for the messages of the session: this one waits no longer."""

    def __init__(self) -> None:
        super().__init__("a newer request waits for the messages of this session")


@final
class PostNumberError(ProtoflyError):
    """A post is neither the next one nor the last one again.

    Attributes:
        expected: The next number.
    """

    def __init__(self, expected: int) -> None:
        super().__init__(f"posts are numbered without gaps; the next one is {expected}")
        self.expected = expected


@final
class PostsPileUpError(ProtoflyError):
    """The runtime sends faster than it may, and does not wait for its posts."""

    def __init__(self) -> None:
        super().__init__("too many posts of this session wait to be taken in; wait for them")


@final
class RestGoneError(ProtoflyError):
    """The session is not held by these requests any more; its token may bring it back."""

    def __init__(self) -> None:
        super().__init__("nobody has this session over HTTP; re-open it with its token")
