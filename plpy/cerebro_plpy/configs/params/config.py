"""One configuration of a run: a row of the model selection table, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cerebro_plpy.configs.params.compile_params import CompileParams
from cerebro_plpy.configs.params.fit_params import FitParams
from cerebro_plpy.configs.params.output_losses import Measured
from cerebro_plpy.records import dataclass


@dataclass(frozen=True)
class Config:
    """One configuration of a run: a row of the model selection table, parsed.

    Its metrics have names when its model is known. One of a template has its name, and in `params`
    its fields. One of a `group` sees no rows but those of it.
    """

    mst_key: int
    model_id: int
    compile_text: str
    fit_text: str
    compile: CompileParams
    fit: FitParams
    metrics: tuple[Measured, ...] = ()
    template: str | None = None
    params: Mapping[str, Any] | None = None
    group: str | None = None
