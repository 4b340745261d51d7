"""Sandboxes of a runtime: hyperties and stubs in nurseries or processes of their own."""
