"""Reference judge of traces: checks the records of processes against machines and claims."""
