"""Links over WebSocket: client, server and listener."""
