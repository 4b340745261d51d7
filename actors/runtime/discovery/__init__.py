"""Searches of domain registries, and the dialogs with the user at a login."""
