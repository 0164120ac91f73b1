"""What an architecture may be made of, and its rewriting of nothing else: modules of the trainer,
by links.
"""
