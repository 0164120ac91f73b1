"""Pages name metrics as cerebro.train does, and those of other functions as Keras does."""

from __future__ import annotations

import pytest

from cerebro_db.dashboard.metric_names import choose_names
from cerebro_plpy.operations.train_arguments import FINAL_METRICS, METRICS, SEARCH_NAMES

NAMES = [
    (task, name, keras) for task, metrics in METRICS.items() for name, keras in metrics.items()
]


@pytest.mark.parametrize(("task", "name", "keras"), NAMES)
def test_names_are_those_of_the_call(task: str, name: str, keras: str) -> None:
    """A metric of the end is named so already; until then the search goes by another one."""
    names = choose_names(task, keras)
    expected = SEARCH_NAMES[keras] if name in FINAL_METRICS else name
    assert names.searched == names.rename(keras) == expected
    assert names.rename(name) == name
    assert names.rename_reason(f"{keras} 0.25 after epoch 3: all") == (
        f"{expected} 0.25 after epoch 3: all"
    )
    stop = f"EarlyStopping: val_{keras} did not get better since iteration 3"
    assert f": validation {expected} did" in names.rename_reason(stop)
    assert names.rename_reason("the budget was over") == "the budget was over"


@pytest.mark.parametrize("keras", sorted({keras for _, _, keras in NAMES}))
def test_runs_of_madlib_keep_the_names_of_keras(keras: str) -> None:
    names = choose_names(None, keras)
    assert names.searched == names.rename(keras) == keras
    for reason in (f"{keras} 1 after", f"patience: val_{keras} did not get better"):
        assert names.rename_reason(reason) == reason


def test_a_loss_with_smooth_labels_is_no_log_loss() -> None:
    """Only a run that is ranked by the log loss trains without label smoothing."""
    assert choose_names("classification", "accuracy").rename("loss") == "loss"
    assert choose_names("regression", "root_mean_squared_error").rename("loss") == "loss"
