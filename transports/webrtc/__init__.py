"""Links by WebRTC data channels; `aiortc` runs in a process of its own."""
