"""Property tests must not fail because a machine is slow: no deadline per example."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
