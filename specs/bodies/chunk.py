"""Bodies of the messages that transfer a large message body in chunks (P2P-21, P2P-22).

The runtimes or sandboxes of two hyperties exchange these messages. The field `chunk` in the body of
a request is about one transfer; its key `step` names the operation. The field `chunks` of a request
or an answer replaces the other fields, which are transferred in chunks: before the request, or
after the answer. Requests about a transfer have the sender, the receiver and the type of the
request that they belong to, so that policies decide on them alike.
"""

from enum import StrEnum
from typing import Annotated, Final

import attrs

from specs.limits.protocol import MAX_ID
from specs.limits.transfer import CHUNK_BYTES, CHUNK_TEXT, TRANSFER_MOST
from specs.schema.field import add_checks
from specs.schema.shape import END, Size, Text, Whole

CHUNK: Final = "chunk"
"""Key in a body for the object about one transfer: its chunk, or an operation on the transfer."""

CHUNKS: Final = "chunks"
"""Key in a body for the object that replaces the fields that are transferred in chunks."""

STEP: Final = "step"
"""Key in the object `chunk` for the operation on the transfer."""

_TEXTS: Final = -(-CHUNK_BYTES // CHUNK_TEXT)
_LAST: Final = -(-TRANSFER_MOST // CHUNK_BYTES) - 1


class ChunkStep(StrEnum):
    """Operations on a transfer in chunks, as requests name them."""

    BEGIN = "begin"
    """Ask whether the receiver has memory for the body of a request (`TransferBegun`)."""

    GIVE = "give"
    """Send a chunk of that body (`Chunk`)."""

    READ = "read"
    """Ask for a chunk of the body of an answer (`ChunkWanted`)."""

    END = "end"
    """End the transfer (`TransferEnded`)."""


@attrs.frozen(slots=True, field_transformer=add_checks)
class TransferBegun:
    """Body of the request to begin the transfer of a large request body.

    Attributes:
        transfer: Number of the transfer, unique for its sender.
        size: Number of bytes of the whole body.
    """

    transfer: Annotated[int, Whole(1, MAX_ID)]
    size: Annotated[int, Whole(1, MAX_ID)]


@attrs.frozen(slots=True, field_transformer=add_checks)
class Chunk:
    """Body of the message that carries one chunk of a transferred body.

    Attributes:
        transfer: Number of the transfer.
        index: Index of the chunk in the body, from 0.
        size: Number of bytes of the whole body.
        data: The bytes of the chunk in base64, in texts of the permitted length.
    """

    transfer: Annotated[int, Whole(1, MAX_ID)]
    index: Annotated[int, Whole(0, _LAST)]
    size: Annotated[int, Whole(1, MAX_ID)]
    data: Annotated[tuple[Annotated[str, Text(least=1)], ...], Size(1, _TEXTS)] = attrs.field(
        repr=False
    )


@attrs.frozen(slots=True, field_transformer=add_checks)
class ChunkWanted:
    """Body of the request for one chunk of the body of an answer.

    Attributes:
        transfer: Number of the transfer: the id of the request that was answered.
        index: Index of the chunk in the body, from 0.
    """

    transfer: Annotated[int, Whole(1, MAX_ID)]
    index: Annotated[int, Whole(0, _LAST)]


@attrs.frozen(slots=True, field_transformer=add_checks)
class TransferEnded:
    """Body of the request to end a transfer: no more chunks are sent or requested."""

    transfer: Annotated[int, Whole(1, MAX_ID)]


@attrs.frozen(slots=True, field_transformer=add_checks)
class ChunkedBody:
    """Object in a message in place of the body that is transferred in chunks.

    Attributes:
        transfer: Number of the transfer.
        size: Number of bytes of the body as JSON.
        sha256: SHA-256 of these bytes, in hexadecimal.
    """

    transfer: Annotated[int, Whole(1, MAX_ID)]
    size: Annotated[int, Whole(1, MAX_ID)]
    sha256: Annotated[str, Text(pattern="^[0-9a-f]{64}" + END, meaning="64 hexadecimal digits")]
