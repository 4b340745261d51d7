"""Limits on rates, memory and numbers: token buckets, fair queues, error counts, timers, quotas."""
