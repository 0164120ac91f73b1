"""Model hopping as pure functions: which config visits which segment next, and which go on. No
database, no clock.
"""
