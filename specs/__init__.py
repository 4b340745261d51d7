"""The protocol as data: addresses, messages, limits, tables of words.

Nothing here decides, waits or writes: attrs and the standard library only.
"""
