"""The template `boosting`: gradient boosted trees, which a trainer grows with LightGBM.

The defaults are LGBM-TD of Holzmüller, Grinsztajn and Steinwart, "Better by Default" (2024), as
their package pytabkit has them: other values for classes than for numbers. Columns are drawn for
each split, as in random forests (Breiman, 2001). An epoch grows the same part of the trees each
time, over all rows of the table at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from cerebro_plpy.configs.architecture.boosted_trees import write_architecture
from cerebro_plpy.configs.search_space.distributions import Choices, Range
from cerebro_plpy.configs.search_space.space import compile_text
from cerebro_plpy.configs.templates.common_fields import LINK, apply_link
from cerebro_plpy.configs.templates.layers.model_io import (
    LOG,
    LONG_VECTOR,
    RARITIES,
    SERIES,
    Floats,
    Head,
    Table,
    Wide,
)
from cerebro_plpy.configs.templates.template import (
    AUTO,
    CLASS_WEIGHT,
    Field,
    Params,
    Rates,
    Template,
    Value,
)
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.records import dataclass

BEST = "best"
RANDOM = "random"
OPTIMIZER = "SGD"
"""Trees have no optimizer, but compile parameters name one."""
USUAL_TREES = 1000
LEAF_BYTES = 23
"""Bytes of a state for each leaf, with the split above it."""
ROOM_BYTES = 32 << 20
"""Room for a state if the call does not set the number of trees: a round has a tree per class."""
MIN_TREES = 100
MIN_LEAVES = 8
"""Leaves that a tree may have at least, however few rows there are."""
LEAF_SECONDS = 2e-5
"""Seconds of a core for a leaf, whatever the rows are."""
TREE_SECONDS = 5e-8
"""Seconds of a core for a row in a tree, whatever the columns are."""
COLUMN_SECONDS = 5e-9
"""Seconds of a core for a row and a column in a tree."""
MAX_LEAVES = 1 << 25
"""Room of a state in a trainer."""
MAX_COLUMNS = (1 << 16) - 1
"""Columns that trees may have in a trainer."""
MAX_WORDS = 512
"""Columns of all texts together."""
USUAL_WORDS = 128
MIN_WORDS = 16
WORD_CELLS = 1 << 25
"""Counts of words of all rows if the call does not set the number of words: 128 MB."""
WORD_SECONDS = 6e-10
"""Seconds of a core for a row and a word in a tree: most counts are 0."""
MIN_RARITY_STEPS = 2 * RARITIES
"""Steps of rarity between a word that is missing and one that three sampled texts have."""


@dataclass(frozen=True)
class TreesTemplate(Template):
    """A family of boosted trees, whose rounds are divided among the epochs of a run."""

    resumes_states: ClassVar[bool] = False

    @property
    def requirement(self) -> str:
        return f"at most {MAX_COLUMNS - MAX_WORDS} columns other than texts and images"

    def suits(self, table: Table) -> bool:
        indicators = table.indicators - len({indicator for _, indicator in table.missing})
        columns = table.numbers + indicators + len(table.cardinalities) + sum(_vectors(table))
        return 1 <= columns <= MAX_COLUMNS - MAX_WORDS

    def params(self, head: Head, rows: int, values: Mapping[str, object]) -> dict[str, Value]:
        params = super().params(head, rows, values)
        if "min_rows" not in values:
            params["min_rows"] = max(1, min(int(params["min_rows"]), rows // MIN_LEAVES))
        if params["trees"] == AUTO:
            params["trees"] = choose_trees(head, int(params["leaves"]))
        if params[TEXT_WORDS.name] == AUTO:
            params[TEXT_WORDS.name] = choose_words(rows)
        leaves = count_trees(head) * int(params["trees"]) * int(params["leaves"])
        if leaves > MAX_LEAVES:
            raise InvalidParameter(
                f"trees is {params['trees']} and leaves is {params['leaves']}, which for "
                f"{count_nouns(count_trees(head), 'tree')} a round is room for {leaves} leaves; "
                f"expected at most {MAX_LEAVES}",
                hint=f"Leave trees out, or write {AUTO!r}.",
            )
        return params

    def build_architecture(self, table: Table, head: Head, params: Params, epochs: int) -> str:
        architecture = json.loads(self.architecture(table, head, params))
        return write_architecture({**architecture["config"], "epochs": epochs})

    def compile_params(
        self, head: Head, params: Params, metrics: Sequence[str] = (), rates: Rates | None = None
    ) -> str:
        return compile_text({"optimizer": OPTIMIZER, "loss": head.loss, "metrics": list(metrics)})


def choose_trees(head: Head, leaves: int) -> int:
    """Return the number of rounds: fewer if a round has a tree for each of many classes.

    >>> from cerebro_plpy.configs.templates.layers.model_io import Classes
    >>> [choose_trees(Classes(count), 50) for count in (2, 10, 100, 1000)]
    [1000, 1000, 291, 100]
    """
    trees_per_round = count_trees(head)
    room = ROOM_BYTES // (trees_per_round * leaves * LEAF_BYTES)
    return max(MIN_TREES, min(USUAL_TREES, room))


def choose_words(rows: int) -> int:
    """Return how many words of a text are counted: fewer if there are many rows.

    >>> [choose_words(rows) for rows in (10, 100_000, 1_000_000, 10_000_000)]
    [128, 128, 33, 16]
    """
    return max(MIN_WORDS, min(USUAL_WORDS, WORD_CELLS // max(1, rows)))


def count_trees(head: Head) -> int:
    """Return the number of trees of a round: one for a number, and for two classes."""
    return head.units if head.units > 2 else 1


def estimate_state_bytes(head: Head, params: Params) -> int:
    """Return the size of a state, which has room for all trees."""
    return count_trees(head) * int(params["trees"]) * int(params["leaves"]) * LEAF_BYTES


def estimate_seconds(table: Table, head: Head, params: Params, rows: int) -> float:
    """Return about how long a core grows all trees of a configuration over so many rows."""
    columns = table.columns + len(table.cardinalities) + sum(_vectors(table))
    words = sum(map(len, _choose_words(table, params)))
    row_seconds = TREE_SECONDS + COLUMN_SECONDS * columns + WORD_SECONDS * words
    tree_seconds = LEAF_SECONDS * int(params["leaves"])
    tree_seconds += rows * float(params["row_share"]) * row_seconds
    return count_trees(head) * int(params["trees"]) * tree_seconds


def _vectors(table: Table) -> list[int]:
    """Return the elements of each wide column that trees read: 0 for a text or an image."""
    return [_count_elements(wide) for wide in table.wide]


def _count_elements(wide: Wide) -> int:
    return wide.elements if wide.kind in (LONG_VECTOR, SERIES) and not wide.levels else 0


def _choose_words(table: Table, params: Params) -> list[list[int]]:
    """Return the numbers of the words that are counted in each wide column."""
    texts = sum(bool(wide.rarities) for wide in table.wide)
    room = MAX_WORDS // max(1, texts) - 1  # a text has a column for all words, too
    # Configurations of earlier versions have no such field.
    words = params.get(TEXT_WORDS.name, 0)
    if words == AUTO:  # nobody has counted rows: fields of clones are compared
        words = USUAL_WORDS
    limit = max(0, min(int(words), room))
    return [find_frequent_words(wide.rarities, limit) for wide in table.wide]


def find_frequent_words(rarities: Sequence[int], limit: int) -> list[int]:
    """Return the numbers of the most frequent words, in increasing order.

    A word that fewer than three sampled texts have is not among them.

    Args:
        rarities: of each number from 1; numbers without a word have the largest.
        limit: the most numbers.

    >>> find_frequent_words([40, 8, 24, 30, 0], 3)
    [2, 3, 5]
    """
    least = max(rarities, default=0) - MIN_RARITY_STEPS
    frequent = [(rarity, number) for number, rarity in enumerate(rarities, 1) if rarity <= least]
    return sorted(number for _, number in sorted(frequent)[:limit])


def _architecture(table: Table, head: Head, params: Params) -> str:
    inputs: dict[str, object] = {
        "numbers": table.numbers,
        "indicators": table.indicators,
        "missing": [list(pair) for pair in table.missing],
        "cardinalities": list(table.cardinalities),
        "vectors": _vectors(table),
    }
    words = _choose_words(table, params)
    if any(words):
        inputs["words"] = words
    fields = {field.name: params[field.name] for field in TREE_FIELDS}
    target = _describe_target(apply_link(head, params))
    return write_architecture({"inputs": inputs, **target, "epochs": 1, **fields})


def _describe_target(head: Head) -> dict[str, object]:
    """Return the units, the bounds of a number, and its link if that is not the identity."""
    if not isinstance(head, Floats):
        return {"units": head.units, "low": None, "high": None}
    (measure,) = head.targets
    target: dict[str, object] = {"units": 1, "low": measure.low, "high": measure.high}
    if head.link == LOG:
        target[LINK.name] = LOG
    return target


TREE_FIELDS = (
    Field(
        "trees",
        f"Rounds of boosting in all epochs; {AUTO!r} is {USUAL_TREES}, or fewer for many classes",
        AUTO,
        Choices((AUTO,)),
        limits=(1, 20_000),
        is_whole=True,
        words=(AUTO,),
    ),
    Field(
        "learning_rate",
        "The share of each tree that is added",
        0.04,
        Range(0.01, 0.2, "log"),
        limits=(1e-5, 1.0),
        floats=0.05,
    ),
    Field(
        "leaves",
        "The most leaves of a tree",
        50,
        Range(8, 256, "log", is_integer=True),
        limits=(2, 1024),
        is_whole=True,
        floats=100,
    ),
    Field(
        "min_rows",
        "The least rows of a leaf; the default is at most an eighth of the training rows",
        40,
        Range(1, 100, "log", is_integer=True),
        limits=(1, 1_000_000),
        is_whole=True,
        floats=3,
    ),
    Field(
        "l2",
        "How much the values of leaves shrink",
        0.0,
        Range(1e-3, 30.0, "log"),
        limits=(0.0, 1e6),
    ),
    Field(
        "row_share",
        "The share of rows that a tree grows over",
        0.75,
        Range(0.5, 1.0, "linear"),
        limits=(0.01, 1.0),
        floats=0.7,
    ),
    Field(
        "column_share",
        "The share of columns that a split may choose among, drawn for each split",
        0.5,
        Range(0.3, 1.0, "linear"),
        limits=(0.01, 1.0),
    ),
    Field(
        "splits",
        "Where a tree splits a column: at the best place, or at a random one",
        BEST,
        Choices((BEST, RANDOM)),
        words=(BEST, RANDOM),
    ),
    Field(
        "max_bins",
        "The most ranges that the values of a column are divided into",
        255,
        Choices((255,)),
        limits=(2, 255),
        is_whole=True,
    ),
    Field(
        "category_levels",
        "The most levels of a category that splits choose among; with more, codes are numbers",
        256,
        Choices((256, 0)),
        limits=(0, 4096),
        is_whole=True,
    ),
)
"""The fields that the architecture has."""
TEXT_WORDS = Field(
    "text_words",
    f"The most frequent words of each text that are counted; {AUTO!r} is {USUAL_WORDS}, or fewer "
    "for many rows",
    AUTO,
    Choices((AUTO,)),
    limits=(0, MAX_WORDS - 1),
    is_whole=True,
    words=(AUTO,),
)
BOOSTING = TreesTemplate(
    name="boosting",
    meaning="Gradient boosted trees, for tables of any kind but texts and images alone",
    fields=(*TREE_FIELDS, TEXT_WORDS, LINK, CLASS_WEIGHT),
    architecture=_architecture,
    skewed_starts=({LINK.name: LOG},),
    # With these, a mixture was better on 30 of 54 tables than with trees of 16 to 127 leaves alone,
    # and worse on 9.
    starts=(
        {
            "trees": 500,
            "learning_rate": 0.1,
            "leaves": 8,
            "min_rows": 10,
            "column_share": 1.0,
            "l2": 1.0,
        },
        {"learning_rate": 0.05, "leaves": 31, "l2": 1.0, "column_share": 0.4, "row_share": 0.9},
        {
            "learning_rate": 0.03,
            "leaves": 127,
            "min_rows": 5,
            "column_share": 0.4,
            "l2": 3.0,
            "category_levels": 0,  # sets of codes leave out levels with few rows
        },
        {"splits": RANDOM, "column_share": 1.0},
    ),
)
