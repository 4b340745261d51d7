"""Bodies of messages: one frozen class each."""
