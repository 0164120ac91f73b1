"""The callbacks that fit parameters may have, each of them once."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.params import early_stopping, tensorboard
from cerebro_plpy.configs.params.early_stopping import EarlyStopping
from cerebro_plpy.configs.params.literals import parse_calls
from cerebro_plpy.configs.params.tensorboard import TensorBoard
from cerebro_plpy.errors import InvalidParameter, InvalidText

KEYS = {tensorboard.NAME: tensorboard.KEYS, early_stopping.NAME: early_stopping.KEYS}


class Callbacks(NamedTuple):
    """What is written for TensorBoard, and when training stops."""

    board: TensorBoard | None = None
    stopping: EarlyStopping | None = None


NONE = Callbacks()


def parse_callbacks(text: object) -> Callbacks:
    """The callbacks of `[EarlyStopping(patience=2, …), …]`, written as such or as a text.

    >>> parse_callbacks("[EarlyStopping(patience=2)]").stopping.monitor
    'val_loss'
    """
    try:
        calls = parse_calls(text) if isinstance(text, str) else []
    except InvalidText as error:
        raise _invalid(text, error.message) from error
    given = dict(calls)
    if not given or len(given) < len(calls) or not given.keys() <= KEYS.keys():
        raise _invalid(text, f"Expected {' or '.join(KEYS)}, each at most once.")
    for name, arguments in given.items():
        unknown = sorted(arguments.keys() - set(KEYS[name]))
        if unknown:
            raise _invalid(
                text, f"{name} takes {', '.join(KEYS[name])}, and no {', '.join(unknown)}."
            )
    board, stopping = given.get(tensorboard.NAME), given.get(early_stopping.NAME)
    return Callbacks(
        None if board is None else tensorboard.tensorboard(board),
        None if stopping is None else early_stopping.early_stopping(stopping),
    )


def _invalid(text: object, why: str) -> InvalidParameter:
    return InvalidParameter(
        "Invalid callbacks fit param.  Currently, only TensorBoard and EarlyStopping callbacks "
        "are accepted.",
        detail=f"Received {text!r:.200}. {why}",
        hint="callbacks=[EarlyStopping(monitor='val_loss', patience=2)], or "
        "[TensorBoard(log_dir='/absolute/path/')]",
    )
