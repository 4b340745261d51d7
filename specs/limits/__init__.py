"""Every number of the protocol, with unit and source; one file per concern."""
