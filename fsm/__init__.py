"""What the protocol decides: declared machines, pure cores, and the judge of a trace.

No Trio, no clock, no logs, no input or output: time and randomness are arguments.
"""
