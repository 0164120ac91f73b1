"""Settings of the property tests of `bench`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A property must not fail because the machine is slow.
settings.register_profile("bench", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bench")
