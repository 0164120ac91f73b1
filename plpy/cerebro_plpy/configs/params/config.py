"""One configuration of a run: a row of the model selection table, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cerebro_plpy.configs.params.compile_params import CompileParams
from cerebro_plpy.configs.params.fit_params import FitParams
from cerebro_plpy.configs.params.output_losses import LoggedMetric
from cerebro_plpy.records import dataclass


@dataclass(frozen=True)
class Config:
    """One configuration of a run."""

    mst_key: int
    model_id: int
    compile_text: str
    fit_text: str
    compile: CompileParams
    fit: FitParams
    metrics: tuple[LoggedMetric, ...] = ()  # set once its model is known
    template: str | None = None  # name of its template, if it has one
    params: Mapping[str, Any] | None = None  # fields of its template
    group: str | None = None  # trains on the rows of this group only
