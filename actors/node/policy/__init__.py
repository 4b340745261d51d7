"""The policy engine of a message node: where its policies come from, are enforced, managed."""
