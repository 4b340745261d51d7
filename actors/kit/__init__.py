"""Building blocks of all processes: actors, supervisors, traces, logs, counters, files and HTTP."""
