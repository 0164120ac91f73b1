"""Searches that draw their configurations: how many, how long each is trained, and by which sampler."""

from __future__ import annotations

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass

ALGORITHMS = ("rand", "tpe")


@dataclass(frozen=True)
class Hyperopt:
    """So many configurations, each trained for so many iterations, suggested by random search or by TPE."""

    num_configs: int
    num_iterations: int
    algorithm: str

    def check(self, module: str) -> None:
        """Raises InvalidParameter, with MADlib's texts, for what cannot be searched by."""
        if self.algorithm not in ALGORITHMS:
            raise InvalidParameter(
                f"{module}: valid algorithm 'automl_params' for hyperopt: 'rand', 'tpe'",
                detail=f"Received {self.algorithm!r}.",
            )
        if min(self.num_configs, self.num_iterations) < 1:
            raise InvalidParameter(
                f"{module}: num_configs and num_iterations in 'automl_params' must be > 0",
                detail=f"Received {self.num_configs} and {self.num_iterations}.",
            )

    def batches(self, segments: int) -> tuple[int, ...]:
        """How many configurations are trained together: as many as there are segments; the last ones take the rest.

        >>> Hyperopt(8, 1, "tpe").batches(3), Hyperopt(7, 1, "tpe").batches(3), Hyperopt(1, 1, "tpe").batches(3)
        ((3, 3, 2), (3, 4), (1,))
        """
        full = max(1, round(self.num_configs / segments)) - 1
        return (*[segments] * full, self.num_configs - full * segments)
