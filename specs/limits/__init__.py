"""Every number of the protocol, with unit and source; one file for each subject.

The source `ours` marks a value that this project has chosen.
"""
