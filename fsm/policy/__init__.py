"""The policy language: what it says, how it is read, and what it decides (POL-02..POL-15)."""
