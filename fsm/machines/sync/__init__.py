"""State machines of data objects: subscriptions, copies, invitations."""
