"""Property tests must not fail because a machine is slow: no deadline per example, nor for drawing them."""

from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
