"""Parts of a node that relay to back ends outside of it (CON-01..CON-04, CON-07)."""
