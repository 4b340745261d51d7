"""The golden player: scenario files run against the real actors under a virtual clock."""
