"""The errors between a sandbox process and its host."""

from typing import final

from specs.errors import ReasonError


@final
class PipeError(ReasonError):
    """The other end of the pipe broke its protocol; the sandbox must end."""

    summary = "the sandbox's pipe is misused"


@final
class SandboxError(ReasonError, public=True):
    """A sandbox process did not start, or its content did not."""

    summary = "no sandbox"


@final
class SandboxEndedError(ReasonError, public=True):
    """A sandbox process ended without a request."""

    summary = "its sandbox has ended"
