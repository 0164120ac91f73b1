"""What a call says that its run may cost: checked before anything begins, and read again by who
resumes it.
"""

from __future__ import annotations

import math

from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.search_space.search_rules import SearchRule
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady
from cerebro_plpy.scheduling.quota.cost_limits import CostLimits, Prices
from cerebro_plpy.trainer_client.settings import Settings


def read_prices(settings: Settings) -> Prices | None:
    """The prices of now; None where nothing has one."""
    found = settings.price_per_core_hour, settings.price_per_gpu_hour, settings.price_per_gb_month
    return Prices(*(price or 0.0 for price in found)) if any(found) else None


def make_cost_limits(
    module: str, settings: Settings, max_cpu: float | None, max_cost: float | None
) -> CostLimits | None:
    """What a run may cost, by the prices of now; None where it may cost whatever it does."""
    for name, value in (("max_cpu", max_cpu), ("max_cost", max_cost)):
        if value is not None and not 0 < value < math.inf:
            raise InvalidParameter(
                f"{module} error: {name} is {value:g}; expected more than 0, or NULL."
            )
    prices = read_prices(settings)
    if max_cost is not None and prices is None:
        raise ObjectNotReady(
            f"{module} error: max_cost is {max_cost:g}, but nothing has a price.",
            hint="An administrator can set one: INSERT INTO cerebro.setting VALUES "
            "('price_per_core_hour', '0.05'); or say max_cpu.",
        )
    limited = max_cpu is not None or max_cost is not None
    return CostLimits(max_cpu, max_cost, prices or Prices()) if limited else None


def make_run_limits(
    module: str, settings: Settings, spec: RunSpec, rule: SearchRule | None
) -> CostLimits | None:
    """That of a run: a replay goes as far as the run did that it repeats, whatever that costs
    now.
    """
    if spec.schedule == "replay":
        return None
    asked = spec.train or rule
    return make_cost_limits(module, settings, asked.max_cpu, asked.max_cost) if asked else None
