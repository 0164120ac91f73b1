"""States of configs as bytes that contain no code, and the mean of several states."""
