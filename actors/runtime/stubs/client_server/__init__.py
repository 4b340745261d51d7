"""Stubs that lead to a server without a message node, by request and response (PFY-05)."""
