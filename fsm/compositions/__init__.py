"""The compositions that are checked: which machines meet, and what they tell each other."""
