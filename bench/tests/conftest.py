"""Settings of the property tests of `bench`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A property must not fail because the machine is slow, nor by an example that another run would not
# have drawn.
settings.register_profile(
    "bench", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("bench")
