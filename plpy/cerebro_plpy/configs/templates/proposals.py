"""Which configurations of templates are tried on a table: tuned defaults first, then what is drawn by a seed.

What a caller says of fields is their `space`: a value fixes a field, a list is what is drawn from instead of the
field's own range. A field that a template does not have says nothing of it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import NamedTuple

from cerebro_plpy.configs.draws import Choices, Draw, Range, read_draw
from cerebro_plpy.configs.keras_names import near_matches
from cerebro_plpy.configs.templates.template import Field, Head, Params, Template, Value
from cerebro_plpy.errors import InvalidParameter

COUNTS = (100, 4), (500, 8), (2500, 15), (10_000, 40), (100_000, 100)
"""Rows and configurations: of more, the best on so few rows is the best by chance. AutoGluon's presets have these."""
MANY = 2000
"""Rows that it takes to learn finer waves: of fewer, they are what is there by chance."""
DIGITS = 4
IN_VAIN = 100
"""Draws that nothing new comes of: then the space is taken to hold no more."""


class Proposal(NamedTuple):
    """A configuration to try: a template, and the value of each of its fields."""

    template: Template
    params: Params


def usual_count(rows: int) -> int:
    """How many configurations are worth trying on so many training rows.

    >>> [usual_count(rows) for rows in (5, 100, 300, 2500, 10**9)]
    [4, 4, 6, 15, 100]
    """
    place = bisect([most for most, _ in COUNTS], rows)
    if place in (0, len(COUNTS)):
        return COUNTS[min(place, len(COUNTS) - 1)][1]
    (low, few), (high, many) = COUNTS[place - 1 : place + 1]
    return few + (many - few) * (rows - low) // (high - low)


def check_space(module: str, templates: Sequence[Template], space: Mapping[str, object]) -> None:
    """Raises InvalidParameter for fields that no template has, and for what one of their fields cannot have."""
    known = {field.name for template in templates for field in template.fields}
    for name in space:
        if name not in known:
            raise InvalidParameter(
                f"{module} error: space has {name!r}, which is a field of none of the templates"
                f" {', '.join(template.name for template in templates)}.",
                hint=near_matches(name, known),
            )
    try:
        for field in (field for template in templates for field in template.fields):
            _wanted(field, space)
    except InvalidParameter as error:
        raise InvalidParameter(f"{module} error: space: {error.message}", hint=error.hint) from error


def proposals(
    templates: Sequence[Template], head: Head, rows: int, space: Mapping[str, object], seed: int
) -> Iterator[Proposal]:
    """Different configurations for a table of so many training rows; the templates take turns.

    Of many rows the first turn of a template is all that it is good to begin with. They end where the space holds no
    others, or hardly any. Raises InvalidParameter as `check_space` does.
    """
    turns = [_different(template, head, rows, space, Random(f"{seed}/{template.name}")) for template in templates]
    if rows >= MANY:
        for turn, template in zip(turns, templates):
            yield from islice(turn, 1 + len(template.starts))
    while turns:
        found = [(turn, next(turn, None)) for turn in turns]
        turns = [turn for turn, proposal in found if proposal]
        yield from (proposal for _, proposal in found if proposal)


def _different(
    template: Template, head: Head, rows: int, space: Mapping[str, object], random: Random
) -> Iterator[Proposal]:
    seen: list[Params] = []
    vain = 0
    for values in _values(template, head, space, random):
        params = template.params(head, rows, values)
        vain = vain + 1 if params in seen else 0
        if not vain:
            seen.append(params)
            yield Proposal(template, params)
        if vain == IN_VAIN:
            return


def _values(template: Template, head: Head, space: Mapping[str, object], random: Random) -> Iterator[dict[str, object]]:
    """What is good to begin with, defaults first, as far as the space has it; then what is drawn, without end."""
    draws = {field.name: _wanted(field, space) or field.draw_for(head) for field in template.fields}
    defaults = {field.name: field.default_for(head) for field in template.fields}
    for start in ({}, *template.starts):
        yield {
            name: value if name not in space or _holds(draws[name], value) else draws[name].draw(random)
            for name, value in {**defaults, **start}.items()
        }
    while True:
        yield {name: _short(draw.draw(random)) for name, draw in draws.items()}


def _short(value: object) -> object:
    """Numbers that people can read: further digits decide nothing."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _wanted(field: Field, space: Mapping[str, object]) -> Draw | None:
    """What the caller says of a field."""
    if field.name not in space:
        return None
    wanted = space[field.name]
    if not isinstance(wanted, list):
        return Choices((field.checked(wanted),))
    draw = read_draw(field.name, wanted, field.whole)
    if isinstance(draw, Range):
        field.checked(draw.low), field.checked(draw.high)
        return draw
    return Choices(tuple(field.checked(value) for value in draw.values))


def _holds(draw: Draw, value: Value) -> bool:
    if isinstance(draw, Range):
        return not isinstance(value, str) and draw.low <= value <= draw.high
    return value in draw.values
