"""The policy language: its terms, its reader, and its decisions (POL-02..POL-15)."""
