"""When a run looks for places."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from cerebro_plpy.run.rota import Rota

LOOK = 5.0


@pytest.mark.parametrize(
    ("limited", "steady", "expected"), [(True, False, LOOK), (True, True, math.inf), (False, False, math.inf)]
)
def test_a_run_that_keeps_its_places_never_looks_for_others(limited: bool, steady: bool, expected: float) -> None:
    """Its last look is long ago: to wait until the next one would be not to wait at all."""
    around: Any = SimpleNamespace(places=SimpleNamespace(limited=limited, steady=steady, next_look=LOOK))
    nothing: Any = None
    assert Rota(nothing, nothing, around, []).next_look == expected
