"""Raw columns as inputs of a network: what is learned of them from training rows, and how it is
applied to any rows.
"""
