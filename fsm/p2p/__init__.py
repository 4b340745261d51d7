"""Direct (P2P) links between runtimes: set-up, choice of candidates, trust, message transfer."""
