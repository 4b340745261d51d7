"""Discovery: who is registered where, and the parts of a runtime that say what it has."""
