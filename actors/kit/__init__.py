"""What an actor is: a mailbox, a task, a supervisor above it, a trace of what it did."""
