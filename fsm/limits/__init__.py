"""Bounds: token buckets, fair queues, error windows, timers."""
