"""The cost limits of a run, checked before it begins and read again when it is resumed."""

from __future__ import annotations

import json
import math
from functools import partial

from cerebro_plpy.configs.json_arguments import read_json
from cerebro_plpy.configs.run_spec import FitArguments, RunSpec
from cerebro_plpy.configs.search_space.search_arguments import MAX_CPU
from cerebro_plpy.configs.search_space.search_rules import SearchRule
from cerebro_plpy.database.call_checks import read_seconds
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady
from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.quota.cost_limits import CostLimits, Prices
from cerebro_plpy.trainer_client.settings import Settings


def convert_intervals(db: Database, module: str, arguments: FitArguments) -> FitArguments:
    """Return the arguments with `max_cpu` of search_params in seconds, which may be an interval.

    So the log has seconds, however they were typed.
    """
    if arguments.search_params is None:
        return arguments
    values = read_json("search_params", arguments.search_params)
    if not isinstance(values, dict) or not isinstance(values.get(MAX_CPU), str):
        return arguments
    text = values[MAX_CPU]
    name = f"{MAX_CPU} in search_params"
    if db.skip_invalid_values(partial(db.rows, sql("read.seconds"), text)) is None:
        raise InvalidParameter(
            f"{module} error: {name} is {text[:80]!r}; expected an interval or a number of "
            "seconds.",
            hint=f"For example search_params => '{json.dumps({MAX_CPU: '10 minutes'})}'.",
        )
    seconds = read_seconds(db, module, name, text)
    return replace(arguments, search_params=json.dumps({**values, MAX_CPU: seconds}))


def read_prices(settings: Settings) -> Prices | None:
    """Return the current prices; None if nothing has a price."""
    prices = Prices(
        settings.price_per_core_hour or 0.0,
        settings.price_per_gpu_hour or 0.0,
        settings.price_per_gb_month or 0.0,
    )
    if not any(prices):
        return None
    return prices


def make_cost_limits(
    module: str, settings: Settings, max_cpu: float | None, max_cost: float | None
) -> CostLimits | None:
    """Return the cost limits of a run at the current prices; None without limits."""
    for name, value in (("max_cpu", max_cpu), ("max_cost", max_cost)):
        if value is not None and not 0 < value < math.inf:
            raise InvalidParameter(
                f"{module} error: {name} is {value:g}; expected more than 0, or NULL.",
                hint=f"Leave {name} out for a run without this limit.",
            )
    prices = read_prices(settings)
    if max_cost is not None and prices is None:
        raise ObjectNotReady(
            f"{module} error: max_cost is {max_cost:g}, but nothing has a price.",
            hint="An administrator can set one: SELECT cerebro.set('price_per_core_hour', 0.05); "
            "or write max_cpu.",
        )
    if max_cpu is None and max_cost is None:
        return None
    return CostLimits(max_cpu, max_cost, prices or Prices())


def make_run_limits(
    module: str, settings: Settings, spec: RunSpec, rule: SearchRule | None
) -> CostLimits | None:
    """Return the cost limits in the spec of a run.

    A replay has none: it trains as far as the original run, at any cost.
    """
    limits = spec.train or rule
    if spec.schedule == "replay" or limits is None:
        return None
    return make_cost_limits(module, settings, limits.max_cpu, limits.max_cost)
