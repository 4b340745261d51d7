"""What runs in the Python workers of Spark, and the process they are forked from."""
