"""Model Hopper Parallelism: the order in which configurations visit segments."""
