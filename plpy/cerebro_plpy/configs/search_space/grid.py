"""The configurations of a search: all combinations of a grid, random draws, or given lists.

Rows are built as texts, as in the model selection table. Each text is parsed again and checked, so
that a table from this module never contains names that Keras does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product, repeat
from random import Random
from typing import NamedTuple

from cerebro_plpy.configs.params.compile_params import canonicalize, parse_compile_params
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.params.literals import quote_shortened
from cerebro_plpy.configs.search_space.distributions import Range
from cerebro_plpy.configs.search_space.space import (
    Distributions,
    Space,
    compile_text,
    fit_text,
    read_models,
    read_space,
)
from cerebro_plpy.errors import CerebroError, InvalidParameter, NullNotAllowed
from cerebro_plpy.limits import CONFIGS, Poll, no_poll, poll_between
from cerebro_plpy.nouns import count_nouns

MAX_ROWS = CONFIGS.maximum


class ConfigRow(NamedTuple):
    """One row of a model selection table, without its key."""

    model_id: int
    compile_params: str
    fit_params: str


def generate_configs(
    compile_grid: str | None,
    fit_grid: str | None,
    model_ids: Sequence[int],
    search_type: str | None = "grid",
    num_configs: int | None = None,
    random_state: int | None = None,
    functions: Functions | None = None,
    poll: Poll = no_poll,
) -> tuple[ConfigRow, ...]:
    """Return the rows of `generate_model_configs`.

    Args:
        search_type: 'grid', 'random', or the beginning of one; None for 'grid'.
    """
    prefix = "grid" if search_type is None else search_type.strip().lower()
    if prefix and "random".startswith(prefix):
        return random_search(
            compile_grid, fit_grid, model_ids, num_configs, random_state, functions, poll
        )
    if not prefix or not "grid".startswith(prefix):
        raise InvalidParameter(
            "DL: 'search_type' must be either 'grid' or 'random'", hint=f"Received {search_type!r}."
        )
    if num_configs is not None or random_state is not None:
        raise InvalidParameter(
            "DL: 'num_configs' and 'random_state' must be NULL for grid search",
            hint="Use search_type 'random' to try only some configurations.",
        )
    return expand_grid(compile_grid, fit_grid, model_ids, functions, poll)


def expand_grid(
    compile_grid: str | None,
    fit_grid: str | None,
    model_ids: Sequence[int],
    functions: Functions | None = None,
    poll: Poll = no_poll,
) -> tuple[ConfigRow, ...]:
    """Return all combinations; the model varies fastest, then the fit keys, then the compile keys.

    >>> rows = expand_grid("{'loss': ['mse'], 'lr': [0.1]}", "{'epochs': [1, 2]}", [1])
    >>> rows[1].compile_params, rows[1].fit_params
    ("optimizer='RMSprop(lr=0.1)',loss='mse'", 'epochs=2')
    """
    space = read_space(compile_grid, fit_grid, model_ids, functions, poll)
    if any(
        isinstance(distribution, Range)
        for distributions in (*space.alternatives, space.fit)
        for distribution in distributions.values()
    ):
        raise InvalidParameter(
            "DL: Cannot search from a distribution with grid search",
            hint="Use search_type 'random', or list the values.",
        )
    check_size(sum(_size(alternative, space) or 0 for alternative in space.alternatives))
    return tuple(drop_duplicates(_combinations(space)))


def random_search(
    compile_grid: str | None,
    fit_grid: str | None,
    model_ids: Sequence[int],
    num_configs: int | None,
    random_state: int | None = None,
    functions: Functions | None = None,
    poll: Poll = no_poll,
) -> tuple[ConfigRow, ...]:
    """Return different configurations, each value drawn independently.

    Args:
        num_configs: number of configurations.
        random_state: seed; None for other rows each time.
    """
    if num_configs is None or num_configs < 1:
        raise InvalidParameter(
            "DL: 'num_configs' cannot be NULL and needs to be a natural number for random search",
            hint=f"Received {'NULL' if num_configs is None else num_configs}.",
        )
    check_size(num_configs)
    space = read_space(compile_grid, fit_grid, model_ids, functions, poll)
    available = count_configs(space, num_configs)
    if available < num_configs:
        raise InvalidParameter(
            f"DL: 'num_configs' is {num_configs}, but the search space holds "
            f"{count_nouns(available, 'different configuration')}",
            hint="Ask for fewer, or use search_type 'grid' to try all of them.",
        )
    return draw_rows(space, num_configs, random_state)


def draw_rows(
    space: Space, count: int, random_state: int | None, existing: Iterable[ConfigRow] = ()
) -> tuple[ConfigRow, ...]:
    """Draw different configurations that do not exist yet; fewer if the space is exhausted."""
    random = Random(random_state)
    excluded = list(existing)
    if count_configs(space, count + len(excluded)) == count + len(excluded):
        return tuple(islice(drop_duplicates(_draw_rows(space, random), excluded), count))
    remaining = list(drop_duplicates(_combinations(space), excluded))
    random.shuffle(remaining)
    return tuple(remaining[:count])


def cross_product(
    model_ids: Sequence[int],
    compile_list: Sequence[str | None],
    fit_list: Sequence[str | None],
    functions: Functions | None = None,
    poll: Poll = no_poll,
) -> tuple[ConfigRow, ...]:
    """Return the rows of `load_model_selection_table`: all models with all texts.

    Duplicates are dropped as by `drop_duplicates`.

    Raises:
        NullNotAllowed: texts are missing.
    """
    if not compile_list or None in compile_list:
        raise NullNotAllowed("compile_params_list cannot be NULL", hint="Give at least one text.")
    if not fit_list:
        raise NullNotAllowed(
            "fit_params_list cannot be NULL", hint="Give at least one text, which may be empty."
        )
    models = read_models(model_ids)
    check_size(len(models) * len(compile_list) * len(fit_list))
    compile_texts = [
        _check_compile_text((text or "").strip(), functions)
        for text in poll_between(compile_list, poll)
    ]
    fit_texts = [_check_fit_text((text or "").strip()) for text in poll_between(fit_list, poll)]
    return tuple(
        drop_duplicates(
            ConfigRow(*row) for row in poll_between(product(models, compile_texts, fit_texts), poll)
        )
    )


def drop_duplicates(
    rows: Iterable[ConfigRow], existing: Iterable[ConfigRow] = ()
) -> Iterator[ConfigRow]:
    """Yield the rows that do not equal an earlier or an existing one.

    Spaces and the order of keys do not matter.
    """
    identities = {_identity(row) for row in existing}
    for row in rows:
        identity = _identity(row)
        if identity not in identities:
            identities.add(identity)
            yield row


def _combinations(space: Space) -> Iterator[ConfigRow]:
    for alternative in space.alternatives:
        distributions = (*alternative.values(), *space.fit.values(), space.models)
        values_of_each = [distribution.values or () for distribution in distributions]
        for values in poll_between(product(*values_of_each), space.poll):
            compiled = dict(zip(alternative, values))
            fitted = dict(zip(space.fit, values[len(alternative) :]))
            yield make_row(values[-1], compiled, fitted, space.functions)


def _draw_rows(space: Space, random: Random) -> Iterator[ConfigRow]:
    for _ in poll_between(repeat(None), space.poll):
        compiled = _draw(random.choice(space.alternatives), random)
        fitted = _draw(space.fit, random)
        yield make_row(space.models.draw(random), compiled, fitted, space.functions)


def _draw(distributions: Distributions, random: Random) -> dict[str, object]:
    return {key: distribution.draw(random) for key, distribution in distributions.items()}


def make_row(
    model_id: object,
    compiled: Mapping[str, object],
    fitted: Mapping[str, object],
    functions: Functions | None,
) -> ConfigRow:
    """Return the row of one combination, after a check of its texts."""
    assert isinstance(model_id, int)
    return ConfigRow(
        model_id,
        _check_compile_text(compile_text(compiled), functions),
        _check_fit_text(fit_text(fitted)),
    )


def _size(alternative: Distributions, space: Space) -> int | None:
    """Return the number of combinations; None if a range is not countable."""
    size = 1
    for distribution in (*alternative.values(), *space.fit.values(), space.models):
        if distribution.values is None:
            return None
        size *= len(distribution.values)
    return size


def count_configs(space: Space, maximum: int) -> int:
    """Count the different configurations of a space, up to a maximum.

    Alternatives may overlap. If all together have more than `maximum` times their number, a single
    one has enough, and the configurations need not be counted.
    """
    sizes = [_size(alternative, space) for alternative in space.alternatives]
    if None in sizes or sum(size or 0 for size in sizes) > maximum * len(sizes):
        return maximum
    return min(maximum, sum(1 for _ in drop_duplicates(_combinations(space))))


def check_size(rows: int) -> None:
    """Check that a number of configurations is not unreasonably large.

    Raises:
        InvalidParameter: it is too large.
    """
    if rows > MAX_ROWS:
        raise InvalidParameter(
            f"{count_nouns(rows, 'configuration', 'was')} asked for, at most {MAX_ROWS} are "
            "generated",
            hint="Shorten the lists, or use search_type 'random'.",
        )


def _identity(row: ConfigRow) -> tuple[int, str, str]:
    return row.model_id, _canonical_text(row.compile_params), _canonical_text(row.fit_params)


@lru_cache(maxsize=1024)  # a grid repeats every text for each model and each text of the other kind
def _canonical_text(text: str | None) -> str:
    try:
        return canonicalize(text)
    except CerebroError:  # a row that a user has written by hand; it equals only itself
        return text or ""


@lru_cache(maxsize=1024)
def _check_compile_text(text: str, functions: Functions | None) -> str:
    return _check_text(text, "Compile", lambda checked: parse_compile_params(checked, functions))


@lru_cache(maxsize=1024)
def _check_fit_text(text: str) -> str:
    return _check_text(text, "Fit", parse_fit_params)


def _check_text(text: str, kind: str, parse: Callable[[str], object]) -> str:
    try:
        parse(text)
    except CerebroError as error:
        message = f"{kind} param check failed for: {quote_shortened(text)}: {error.message}"
        raise type(error)(message, hint=error.hint, detail=error.detail) from error
    return text
