"""The outputs of a network for the rows of packed datasets, each behind the target of its row.

A job computes them buffer by buffer, wherever these come from. When it is done they are fetched in
chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cerebro_trainer.commands.jobs import Job
from cerebro_trainer.data.buffers import Buffer, get_single_target
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.programs.program import Array, Program
from cerebro_trainer.state.serialization import bytes_of
from cerebro_trainer.wire.fields import integer
from cerebro_trainer.wire.frames import Message, Messages

Lines: TypeAlias = npt.NDArray[np.float32]
"""A line for each row: its target, which is a number or the place of a class, and then the outputs.
"""


class OutputsJob(Job):
    """The one output of a config's state for each row of its datasets, in the order of their
    buffers.
    """

    def __init__(self, program: Program, datasets: tuple[str, ...]) -> None:
        super().__init__(program, datasets)
        self._lines: dict[str, list[Lines]] = {dataset: [] for dataset in datasets}

    def take(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        if buffer.rows:
            self._lines[dataset].append(
                _lines(get_single_target(buffer), self.program.predict(buffer.inputs))
            )

    def result(self) -> dict[str, object]:
        return {}

    @property
    def lines(self) -> list[Lines]:
        """The lines of all rows, dataset after dataset."""
        return [each for dataset in self.datasets for each in self._lines[dataset]]


def chunks(parts: Sequence[Lines] | None, header: Mapping[str, Any]) -> Messages:
    """Yield the lines of a job that is done, in chunks of at most `chunk_bytes`, but of one row at
    least.
    """
    units, most = integer(header, "units", minimum=1), integer(header, "chunk_bytes", minimum=1)
    if parts is None:
        raise RequestError("the last job has left no outputs of rows", sqlstate="55000")
    rows = 0
    for lines in parts:
        if lines.shape[1] != units + 1:
            raise ConfigError(
                f"the model's output has {lines.shape[1] - 1} units; expected {units}",
                sqlstate="42804",
            )
        size = max(1, most // lines[0].nbytes)
        for start in range(0, len(lines), size):
            yield Message({"more": True}, bytes_of(lines[start : start + size]))
        rows += len(lines)
    yield Message({"ok": {"rows": rows}})


def _lines(target: Array, outputs: Sequence[Array]) -> Lines:
    if len(outputs) != 1:
        raise ConfigError(f"the model has {len(outputs)} outputs; expected one", sqlstate="42804")
    return np.column_stack([target, outputs[0].reshape(len(target), -1)]).astype("<f4")
