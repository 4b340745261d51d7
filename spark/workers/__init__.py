"""The code that runs in the Python workers of Spark, and the process that forks them."""
