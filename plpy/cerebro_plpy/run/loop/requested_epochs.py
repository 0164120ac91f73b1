"""The epochs that a user requests of configurations of a live run, and those that they get."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter
from cerebro_plpy.limits import EPOCHS
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.run.log.step_log import Command
from cerebro_plpy.run.state.config_state import ConfigState
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, has_begun_epoch


def choose_epochs(state: RunState, command: Command, progress: ConfigProgress) -> int:
    """Return the requested epochs, or more if a configuration has begun them already."""
    has_begun = (
        progress.kind == "evaluate"
        or progress.running_segments
        or has_begun_epoch(state.plan, progress)
    )
    begun_epochs = progress.epoch - 1
    if has_begun:
        segments = len(state.plan.segments_of(progress.mst_key))
        begun_epochs = progress.epoch + math.ceil(progress.later_visits / segments)
    epochs = min(read_epochs(command), find_max_epochs(state.configs[progress.mst_key]))
    return max(epochs, begun_epochs)


def read_epochs(command: Command) -> int:
    """Return the epochs that a command requests.

    Raises:
        InvalidParameter: they are no number of epochs.
    """
    epochs = command.change.get("epochs")
    if type(epochs) is not int or not 1 <= epochs <= EPOCHS.maximum:
        raise InvalidParameter(f"epochs is {epochs!r:.80}; expected 1 to {EPOCHS.maximum}")
    return epochs


def check_room(command: Command, configs: Sequence[ConfigState]) -> None:
    """Check that any of the configurations can be trained for the requested epochs.

    Boosted trees have room for those of the planned epochs.
    """
    if any(read_epochs(command) <= find_max_epochs(config) for config in configs):
        return
    keys = ", ".join(str(config.mst_key) for config in configs)
    epochs = count_nouns(configs[0].request.spec.epochs, "epoch")
    raise FeatureNotSupported(
        f"all trees of mst_key {keys} are grown in {epochs}; "
        "cerebro.clone_config with more trees and warm => false adds a configuration"
    )


def find_max_epochs(config: ConfigState) -> int:
    """Return the most epochs that a configuration can be trained for."""
    if config.learns_from_whole_epochs:
        return config.request.spec.epochs
    return EPOCHS.maximum
