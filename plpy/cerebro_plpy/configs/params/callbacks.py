"""The callbacks that fit parameters may have, each at most once."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.params import early_stopping, tensorboard
from cerebro_plpy.configs.params.early_stopping import EarlyStopping
from cerebro_plpy.configs.params.literals import parse_calls
from cerebro_plpy.configs.params.tensorboard import TensorBoard
from cerebro_plpy.errors import InvalidParameter, InvalidText

KEYS = {tensorboard.NAME: tensorboard.KEYS, early_stopping.NAME: early_stopping.KEYS}


class Callbacks(NamedTuple):
    """The callbacks of a configuration."""

    tensorboard: TensorBoard | None = None
    early_stopping: EarlyStopping | None = None


NO_CALLBACKS = Callbacks()


def parse_callbacks(text: object) -> Callbacks:
    """Return the callbacks of a text such as `[EarlyStopping(patience=2, …), …]`.

    Raises:
        InvalidParameter: the text is invalid, or has other callbacks.

    >>> parse_callbacks("[EarlyStopping(patience=2)]").early_stopping.monitor
    'val_loss'
    """
    calls = []
    try:
        if isinstance(text, str):
            calls = parse_calls(text)
    except InvalidText as error:
        raise _invalid(text, error.message) from error
    arguments_by_name = dict(calls)
    is_unique = len(arguments_by_name) == len(calls)
    if not calls or not is_unique or not arguments_by_name.keys() <= KEYS.keys():
        raise _invalid(text, f"Expected {' or '.join(KEYS)}, each at most once.")
    for name, arguments in arguments_by_name.items():
        unknown = sorted(arguments.keys() - set(KEYS[name]))
        if unknown:
            raise _invalid(
                text, f"{name} takes {', '.join(KEYS[name])}, and no {', '.join(unknown)}."
            )
    callbacks = NO_CALLBACKS
    if tensorboard.NAME in arguments_by_name:
        board = tensorboard.make_tensorboard(arguments_by_name[tensorboard.NAME])
        callbacks = callbacks._replace(tensorboard=board)
    if early_stopping.NAME in arguments_by_name:
        stopping = early_stopping.make_early_stopping(arguments_by_name[early_stopping.NAME])
        callbacks = callbacks._replace(early_stopping=stopping)
    return callbacks


def _invalid(text: object, reason: str) -> InvalidParameter:
    return InvalidParameter(
        "Invalid callbacks fit param.  Currently, only TensorBoard and EarlyStopping callbacks "
        "are accepted.",
        detail=f"Received {text!r:.200}. {reason}",
        hint="callbacks=[EarlyStopping(monitor='val_loss', patience=2)], or "
        "[TensorBoard(log_dir='/absolute/path/')]",
    )
