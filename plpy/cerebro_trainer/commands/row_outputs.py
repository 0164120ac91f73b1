"""The outputs of a network for the rows of packed datasets, with the targets of the rows.

A job computes them buffer by buffer; when it is finished, the backend fetches them in chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from cerebro_trainer.commands.jobs import DatasetKeys, Job
from cerebro_trainer.commands.predictions import check_units
from cerebro_trainer.data.buffers import Buffer, get_single_target
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.programs.learner import Learner
from cerebro_trainer.state.serialization import bytes_of
from cerebro_trainer.wire.fields import Header, integer
from cerebro_trainer.wire.frames import Array, Arrays, Float32Array, Message, Messages

OutputRows: TypeAlias = Float32Array
"""The target of each row, a number or a class index, and its outputs: shape (rows, 1 + units)."""


class OutputsJob(Job):
    """Computes the output of a config's state for each row of its datasets."""

    def __init__(self, learner: Learner, datasets: DatasetKeys) -> None:
        super().__init__(learner, datasets)
        self._outputs: dict[str, list[OutputRows]] = {dataset: [] for dataset in datasets}

    def process(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        if buffer.rows:
            target = get_single_target(buffer)
            outputs = self.learner.predict(buffer.inputs)
            self._outputs[dataset].append(_combine(target, outputs))

    def list_outputs(self) -> list[OutputRows]:
        """Return the outputs by buffer, in the order of the datasets and of their buffers."""
        return [outputs for dataset in self.datasets for outputs in self._outputs[dataset]]


def send_chunks(outputs: Sequence[OutputRows] | None, header: Header) -> Messages:
    """Yield outputs in chunks of at most `chunk_bytes`, but of at least one row."""
    units = integer(header, "units", minimum=1)
    chunk_bytes = integer(header, "chunk_bytes", minimum=1)
    if outputs is None:
        raise RequestError("the last job has left no outputs of rows", sqlstate="55000")
    row_count = 0
    for rows in outputs:
        check_units(rows.shape[1] - 1, units)
        chunk_rows = max(1, chunk_bytes // rows[0].nbytes)
        for start in range(0, len(rows), chunk_rows):
            yield Message({"more": True}, bytes_of(rows[start : start + chunk_rows]))
        row_count += len(rows)
    yield Message({"ok": {"rows": row_count}})


def _combine(target: Array, outputs: Arrays) -> OutputRows:
    if len(outputs) != 1:
        raise ConfigError(
            f"the model has {count_nouns(len(outputs), 'output')}; expected one", sqlstate="42804"
        )
    return np.column_stack([target, outputs[0].reshape(len(target), -1)]).astype("<f4")
