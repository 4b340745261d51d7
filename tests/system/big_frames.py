"""Importing this before anything of `transports` raises the limit of a frame to 64 MiB.

For processes that run conformance cases, which send messages of up to 16 MiB.
"""

import specs.limits.protocol

specs.limits.protocol.MAX_FRAME_BYTES = 64 * 1_048_576
