"""A chat protocol of lines over TCP that nothing but these tests knows.

    client                  server
    HELLO <who>          -> WELCOME <who>
    SAY <n> <to> <text>  -> SAID <n> <text>    or    NOBODY <n>
                         <- WHISPER <from> <text>
    BYE                  -> (hangs up)

`server.py` speaks it; `package/` is the stub that its operator publishes.
"""
