"""The life of a direct link: requester, handler, negotiation, transfer."""
