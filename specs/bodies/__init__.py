"""Classes of message bodies: one frozen class for each form of a body."""
