"""The largest counts that a call may request, in one table, and interruptible loops over them.

Time and memory of a backend grow with the counts among a call's arguments. Each integer argument of
an SQL function is therefore in this table, and so is each count within JSON, a parameter text or a
setting. A count above its maximum is refused before work begins. Fields of templates declare their
ranges themselves (`configs/templates`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import fields

Poll = Callable[[], object]
"""Raises if the caller's statement is cancelled or timed out; `Database.check_interrupts` is one.
"""
T = TypeVar("T")

INTEGER = (1 << 31) - 1
BIGINT = (1 << 63) - 1
POLL_EVERY = 64
"""Items between two checks for a cancel: parsing an item takes about a millisecond at most."""


class Limit(NamedTuple):
    """The maximum of a count."""

    maximum: int
    reason: str  # hint of the error


EPOCHS = Limit(
    999_999, "The log of a run has room for 999,999 epochs. Fewer are enough to train any model."
)
CONFIGS = Limit(
    100_000, "Each configuration is a row of the log and a state. Draw fewer, or shorten the lists."
)
SEGMENTS = Limit(
    65_536,
    "The key of each segment is held in memory, and 1,024 trainers work at a time at the most.",
)
TRIED_CONFIGS = Limit(
    5_000,
    "The network of each configuration is written down first. Leave it out: rows and budget "
    "decide.",
)
CONNECTIONS = Limit(
    262_143, "A worker is a connection, and PostgreSQL allows at most so many (max_connections)."
)
COLUMNS = Limit(1_600, "A table of PostgreSQL has at most 1,600 columns.")
CLASSES = Limit(65_536, "Packing encodes at most 65,536 classes.")
SAMPLES = Limit(1 << 24, "A window is one array of real numbers, of at most 64 MB for each column.")
ATTEMPTS = Limit(1_000, "A visit that fails so often will not succeed. The default is 3.")
PICKS = Limit(
    1_000, "Each pick compares all candidates over the rows that are held back. The default is 5."
)
BATCH = Limit(INTEGER, "A batch of more rows than a segment has is the whole segment.")
PASSES = Limit(INTEGER, "The passes of a visit are made by a trainer, which a cancel ends.")
CHUNK = Limit(128 << 10, "Chunks are collected to frames of 128 KiB.")
NUMBER = Limit(
    INTEGER, "PostgreSQL's integer. Compared with other numbers, and never counted up to."
)
SEED = Limit(
    BIGINT - 1_000, "Seeds that follow it divide rows where it leaves a class without any."
)
LARGE = Limit(BIGINT, "PostgreSQL's bigint. Compared with other numbers, and never counted up to.")

ARGUMENTS: Mapping[str, Limit] = {
    "add_configs.configs": CONFIGS,
    "drill_down.configs": CONFIGS,
    "enter_queue.configs": NUMBER,
    "add_to_queue.configs": NUMBER,
    "train.configs": TRIED_CONFIGS,
    "plan.configs": TRIED_CONFIGS,
    "train.seed": SEED,
    "plan.seed": SEED,
    "num_configs": CONFIGS,
    "num_iterations": EPOCHS,
    "metrics_compute_frequency": EPOCHS,
    "epochs": EPOCHS,
    "r": EPOCHS,
    "eta": EPOCHS,
    "skip_last": EPOCHS,
    "workers": CONNECTIONS,
    "n_segments": SEGMENTS,
    "max_attempts": ATTEMPTS,
    "ensemble": PICKS,
    "outputs": CLASSES,
    "hidden": CLASSES,
    "num_classes": CLASSES,
    "k": CLASSES,
    "dependent_count": COLUMNS,
    "width": SAMPLES,
    "chunk_bytes": CHUNK,
    "units": CLASSES,
    "stride": NUMBER,
    "buffer_size": NUMBER,
    "min_group_rows": NUMBER,
    "feature_budget": NUMBER,
    "pred_type": NUMBER,
    "pass_no": NUMBER,
    "buffer_id": NUMBER,
    "part": NUMBER,
    "place": NUMBER,
    "fewest": NUMBER,
    "most": NUMBER,
    "wanted": NUMBER,
    "had": NUMBER,
    "places": NUMBER,
    "rows": LARGE,
    "cache_bytes": LARGE,
}
"""Limits of the counts among the arguments of SQL functions.

The key is the name of the argument, with its function if a name has two meanings.
"""

KEYS = frozenset(
    (
        "run_id",
        "replay_run",
        "mst_key",
        "model_id",
        "model_id_list",
        "explored_model",
        "version",
        "id",
        "seed",
        "random_state",
    )
)
"""Integer arguments that are not counts, but keys or seeds."""

PARAMETERS: Mapping[str, Limit] = {
    "R": EPOCHS,
    "eta": EPOCHS,
    "skip_last": EPOCHS,
    "first_epochs": EPOCHS,
    "grace_epochs": EPOCHS,
    "interval": EPOCHS,
    "patience": NUMBER,
    "start_from_epoch": NUMBER,
    "num_iterations": EPOCHS,
    "epochs": PASSES,
    "initial_epoch": PASSES,
    "steps_per_epoch": PASSES,
    "batch_size": BATCH,
    "configs": CONFIGS,
    "num_configs": CONFIGS,
    "others": CONFIGS,
    "live_states": CONFIGS,
    "max_visits": NUMBER,
}
"""Limits of the counts in search_params, automl_params and fit parameters, by name."""

SETTINGS: Mapping[str, Limit] = {
    "trainer_idle_seconds": NUMBER,
    "trainer_nursery_seconds": NUMBER,
    "commit_seconds": NUMBER,
    "max_workers_total": CONNECTIONS,
    "trainer_memory_mb": NUMBER,
    "cache_mb": NUMBER,
    "kept_features_mb": NUMBER,
    "spare_cores": NUMBER,
}
"""Limits of the whole numbers in cerebro.setting, by name."""

JSON_CHARACTERS = Limit(1_000_000, 'Ranges, such as [1, 1000000, "linear"], stand for long lists.')
LISTED_VALUES = Limit(10_000, 'A range, such as [1, 1000000, "linear"], stands for a long list.')
NETWORK_LAYERS = Limit(10_000, "Networks that are in use have fewer than 5,000 layers.")
ENDS = Limit(
    1_600, "Each input and each output is a column, and a table of PostgreSQL has at most 1,600."
)
ARCHITECTURE_CHARACTERS = Limit(
    10_000_000, "The JSON of networks that are in use has a few MB. Weights go beside it."
)
ARCHITECTURE_VALUES = Limit(
    1_000_000, "The JSON of networks that are in use has fewer values. Weights go beside it."
)
HIDDEN_LAYERS = Limit(100, "A head that tells layers apart has one hidden layer or two.")
HEAD_WEIGHTS = Limit(
    1 << 24, "The weights of a head are drawn in the backend. Put a layer with fewer units between."
)


def limit_of(function: str, argument: str) -> Limit | None:
    """Return the limit of an argument of an SQL function; None if it is not a count.

    >>> limit_of("set_epochs", "epochs").maximum, limit_of("cancel", "run_id")
    (999999, None)
    """
    return ARGUMENTS.get(f"{function}.{argument}", ARGUMENTS.get(argument))


def check(name: str, value: int, limit: Limit) -> None:
    """Check that a count is at most its maximum.

    Raises:
        InvalidParameter: the count is too large.

    >>> check("epochs", 5, EPOCHS)
    """
    if value > limit.maximum:
        raise InvalidParameter(
            f"{name} is {value}; expected at most {limit.maximum}.", hint=limit.reason
        )


def check_arguments(function: str, arguments: Mapping[str, Any]) -> None:
    """Check all counts among the arguments of an SQL function, the elements of arrays included."""
    for name, value in arguments.items():
        limit = limit_of(function, name)
        for count in value if isinstance(value, list) else [value]:
            if limit is not None and type(count) is int:
                check(name, count, limit)


def check_record(function: str, arguments: Any) -> None:
    """Check all counts in a record of the arguments of an SQL function."""
    values = {field.name: getattr(arguments, field.name) for field in fields(arguments)}
    check_arguments(function, values)


def no_poll() -> None:
    """Do nothing: the `Poll` of work that cannot be cancelled, such as that of a test."""


def poll_between(items: Iterable[T], poll: Poll, interval: int = POLL_EVERY) -> Iterator[T]:
    """Yield the items, and poll between them, so that a cancel ends a loop of any length.

    >>> list(poll_between("abc", no_poll))
    ['a', 'b', 'c']
    """
    for number, item in enumerate(items):
        if number % interval == 0:
            poll()
        yield item
