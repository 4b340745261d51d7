"""What is bounded, and by how much: token buckets, budgets, windows, timers."""
