"""Which configurations a search tries: every combination of a grid, random draws, or given lists.

Rows are made as texts, as the model selection table holds them, and each text is read back and
checked here, so that a table made by this module never names what Keras does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product, repeat
from math import prod
from random import Random
from typing import NamedTuple

from cerebro_plpy.configs.params.compile_params import canonical, parse_compile_params
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.params.literals import quote_shortened
from cerebro_plpy.configs.search_space.distributions import Draw, Range
from cerebro_plpy.configs.search_space.space import (
    Draws,
    Space,
    compile_text,
    fit_text,
    read_models,
    read_space,
)
from cerebro_plpy.errors import CerebroError, InvalidParameter, NullNotAllowed
from cerebro_plpy.limits import CONFIGS, Poll, never, polled

MAX_ROWS = CONFIGS.most


class ConfigRow(NamedTuple):
    """One row of a model selection table, without its key."""

    model_id: int
    compile_params: str
    fit_params: str


def generate(
    compile_grid: str | None,
    fit_grid: str | None,
    model_ids: Sequence[int],
    search_type: str | None = "grid",
    num_configs: int | None = None,
    random_state: int | None = None,
    functions: Functions | None = None,
    poll: Poll = never,
) -> tuple[ConfigRow, ...]:
    """The rows of `generate_model_configs`; `search_type` is 'grid', 'random', or the beginning of
    one.
    """
    wanted = "grid" if search_type is None else search_type.strip().lower()
    if wanted and "random".startswith(wanted):
        return random_search(
            compile_grid, fit_grid, model_ids, num_configs, random_state, functions, poll
        )
    if not wanted or not "grid".startswith(wanted):
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
    poll: Poll = never,
) -> tuple[ConfigRow, ...]:
    """Every combination, the model varying fastest, then the fit keys, then the compile keys.

    >>> rows = expand_grid("{'loss': ['mse'], 'lr': [0.1]}", "{'epochs': [1, 2]}", [1])
    >>> rows[1].compile_params, rows[1].fit_params
    ("optimizer='RMSprop(lr=0.1)',loss='mse'", 'epochs=2')
    """
    space = read_space(compile_grid, fit_grid, model_ids, functions, poll)
    if any(
        isinstance(draw, Range)
        for draws in (*space.alternatives, space.fit)
        for draw in draws.values()
    ):
        raise InvalidParameter(
            "DL: Cannot search from a distribution with grid search",
            hint="Use search_type 'random', or list the values.",
        )
    check_size(sum(_size(alternative, space) or 0 for alternative in space.alternatives))
    return tuple(collapse(_combinations(space)))


def random_search(
    compile_grid: str | None,
    fit_grid: str | None,
    model_ids: Sequence[int],
    num_configs: int | None,
    random_state: int | None = None,
    functions: Functions | None = None,
    poll: Poll = never,
) -> tuple[ConfigRow, ...]:
    """`num_configs` different configurations, each value drawn independently.

    The same `random_state` gives the same rows; NULL gives others each time.
    """
    if num_configs is None or num_configs < 1:
        raise InvalidParameter(
            "DL: 'num_configs' cannot be NULL and needs to be a natural number for random search",
            hint=f"Received {'NULL' if num_configs is None else num_configs}.",
        )
    check_size(num_configs)
    space = read_space(compile_grid, fit_grid, model_ids, functions, poll)
    found = how_many(space, num_configs)
    if found < num_configs:
        raise InvalidParameter(
            f"DL: 'num_configs' is {num_configs}, but the search space holds {found} different "
            "configurations",
            hint="Ask for fewer, or use search_type 'grid' to try all of them.",
        )
    return draw_rows(space, num_configs, random_state)


def draw_rows(
    space: Space, count: int, random_state: int | None, existing: Iterable[ConfigRow] = ()
) -> tuple[ConfigRow, ...]:
    """So many different configurations of a space, none of them an existing one; fewer where it
    holds no more.
    """
    random, others = Random(random_state), list(existing)
    if how_many(space, count + len(others)) == count + len(others):
        return tuple(islice(collapse(_drawn(space, random), others), count))
    rest = list(collapse(_combinations(space), others))
    random.shuffle(rest)
    return tuple(rest[:count])


def cross_product(
    model_ids: Sequence[int],
    compile_list: Sequence[str | None],
    fit_list: Sequence[str | None],
    functions: Functions | None = None,
    poll: Poll = never,
) -> tuple[ConfigRow, ...]:
    """The rows of `load_model_selection_table`: every model with every compile and every fit text.

    Rows that `collapse` finds equal are given once. Raises NullNotAllowed for missing texts.
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
        _checked_compile((text or "").strip(), functions) for text in polled(compile_list, poll)
    ]
    fit_texts = [_checked_fit((text or "").strip()) for text in polled(fit_list, poll)]
    return tuple(
        collapse(ConfigRow(*row) for row in polled(product(models, compile_texts, fit_texts), poll))
    )


def collapse(rows: Iterable[ConfigRow], existing: Iterable[ConfigRow] = ()) -> Iterator[ConfigRow]:
    """The rows in order, less those that equal an earlier or an existing one up to spaces and key
    order.
    """
    seen = {_identity(row) for row in existing}
    for row in rows:
        identity = _identity(row)
        if identity not in seen:
            seen.add(identity)
            yield row


def _combinations(space: Space) -> Iterator[ConfigRow]:
    for alternative in space.alternatives:
        draws = (*alternative.values(), *space.fit.values(), space.models)
        for values in polled(product(*(draw.values or () for draw in draws)), space.poll):
            compiled = dict(zip(alternative, values))
            fitted = dict(zip(space.fit, values[len(alternative) :]))
            yield made_row(values[-1], compiled, fitted, space.functions)


def _drawn(space: Space, random: Random) -> Iterator[ConfigRow]:
    for _ in polled(repeat(None), space.poll):
        compiled = _draw(random.choice(space.alternatives), random)
        fitted = _draw(space.fit, random)
        yield made_row(space.models.draw(random), compiled, fitted, space.functions)


def _draw(draws: Draws, random: Random) -> dict[str, object]:
    return {key: draw.draw(random) for key, draw in draws.items()}


def made_row(
    model_id: object,
    compiled: Mapping[str, object],
    fitted: Mapping[str, object],
    functions: Functions | None,
) -> ConfigRow:
    """The row of one combination, its texts checked."""
    assert isinstance(model_id, int)
    return ConfigRow(
        model_id,
        _checked_compile(compile_text(compiled), functions),
        _checked_fit(fit_text(fitted)),
    )


def _size(alternative: Draws, space: Space) -> int | None:
    """How many combinations there are; None where a range has no end of values."""
    counts = [_count(draw) for draw in (*alternative.values(), *space.fit.values(), space.models)]
    return None if None in counts else prod(count or 0 for count in counts)


def _count(draw: Draw) -> int | None:
    return None if draw.values is None else len(draw.values)


def how_many(space: Space, wanted: int) -> int:
    """How many different configurations a space holds; `wanted` where it holds at least as many.

    Alternatives may overlap. Where all together hold more than `wanted` times their number, one of
    them alone holds enough; only below that must they be counted.
    """
    sizes = [_size(alternative, space) for alternative in space.alternatives]
    if None in sizes or sum(size or 0 for size in sizes) > wanted * len(sizes):
        return wanted
    return min(wanted, sum(1 for _ in collapse(_combinations(space))))


def check_size(rows: int) -> None:
    """Raises InvalidParameter for more configurations than anybody means to try."""
    if rows > MAX_ROWS:
        raise InvalidParameter(
            f"{rows} configurations were asked for, at most {MAX_ROWS} are generated",
            hint="Shorten the lists, or use search_type 'random'.",
        )


def _identity(row: ConfigRow) -> tuple[int, str, str]:
    return row.model_id, _one_spelling(row.compile_params), _one_spelling(row.fit_params)


@lru_cache(maxsize=1024)  # a grid repeats every text for each model and each text of the other kind
def _one_spelling(text: str | None) -> str:
    try:
        return canonical(text)
    except CerebroError:  # a row that someone wrote by hand; it equals only itself
        return text or ""


@lru_cache(maxsize=1024)
def _checked_compile(text: str, functions: Functions | None) -> str:
    return _checked(text, "Compile", lambda given: parse_compile_params(given, functions))


@lru_cache(maxsize=1024)
def _checked_fit(text: str) -> str:
    return _checked(text, "Fit", parse_fit_params)


def _checked(text: str, kind: str, parse: Callable[[str], object]) -> str:
    try:
        parse(text)
    except CerebroError as error:
        message = f"{kind} param check failed for: {quote_shortened(text)}: {error.message}"
        raise type(error)(message, hint=error.hint, detail=error.detail) from error
    return text
