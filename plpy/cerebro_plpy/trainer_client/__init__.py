"""A trainer process as a session has it: its settings, its start, its link, and what may be asked
of it.
"""
