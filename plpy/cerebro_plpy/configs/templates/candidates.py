"""Which configurations of templates are tried on a table: tuned defaults, what did well before,
then what a seed draws.

What a caller says of fields is their `space`: a value fixes a field, a list is what is drawn from
instead of the field's own range. A field that a template does not have says nothing of it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from random import Random
from typing import NamedTuple

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.configs.search_space.distributions import Choices, Draw, Range, read_draw
from cerebro_plpy.configs.templates.layers.model_io import Classes, Head
from cerebro_plpy.configs.templates.template import Field, Params, Template
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import replace

COUNTS = (100, 8), (500, 16), (2500, 24), (10_000, 40), (100_000, 100)
"""Rows and configurations: of more, the best on so few rows is the best by chance. AutoGluon's
presets have half of these for the fewest rows, but one model of theirs has many networks."""
MANY = 2000
"""Rows of which more can be learned than by usual values: of fewer, finer waves and steps come
after those.
"""
DIGITS = 4
IN_VAIN = 100
"""Draws that nothing new comes of: then the space is taken to hold no more."""


class Proposal(NamedTuple):
    """A configuration to try: a template, the value of each of its fields, and why it is tried."""

    template: Template
    params: Params
    reason: str


class Predecessor(NamedTuple):
    """A configuration that did well: its template by name, its fields, where that was, and in which
    run.
    """

    template: str
    params: Mapping[str, object]
    origin: str
    run_id: int


class Predecessors(NamedTuple):
    """Those that are tried before what is good to begin with, and those that are tried after it."""

    first: Sequence[Predecessor] = ()
    later: Sequence[Predecessor] = ()

    @property
    def runs(self) -> list[int]:
        """The runs that they are of."""
        return list(dict.fromkeys(each.run_id for each in (*self.first, *self.later)))


def usual_count(rows: int) -> int:
    """How many configurations are worth trying on so many training rows.

    >>> [usual_count(rows) for rows in (5, 100, 300, 2500, 10**9)]
    [8, 8, 12, 24, 100]
    """
    place = bisect([most for most, _ in COUNTS], rows)
    if place in (0, len(COUNTS)):
        return COUNTS[min(place, len(COUNTS) - 1)][1]
    (low, few), (high, many) = COUNTS[place - 1 : place + 1]
    return few + (many - few) * (rows - low) // (high - low)


def check_space(module: str, templates: Sequence[Template], space: Mapping[str, object]) -> None:
    """Raises InvalidParameter for fields that no template has, and for what one of their fields
    cannot have.
    """
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
        raise InvalidParameter(
            f"{module} error: space: {error.message}", hint=error.hint
        ) from error


CALIBRATED = ("log_loss", "auc")
"""Metrics to which labels that are smoothed in training do harm."""
UNKNOWN = Predecessors()
"""Nothing is known of earlier runs."""


class Searched(NamedTuple):
    """What configurations are for: what the network is to give, training rows, and what the caller
    says of fields.
    """

    head: Head
    rows: int
    space: Mapping[str, object]


def searched_for(
    head: Head, metric: str | None, rows: int, space: Mapping[str, object]
) -> Searched:
    """What configurations are for that are compared by a metric."""
    if isinstance(head, Classes) and metric in CALIBRATED:
        head = replace(head, calibrated=True)
    return Searched(head, rows, space)


def proposals(
    templates: Sequence[Template],
    searched: Searched,
    seed: int,
    known: Predecessors = UNKNOWN,
    existing: Iterable[tuple[str, Params]] = (),
    *,
    learning: bool = False,
) -> Iterator[Proposal]:
    """Different configurations, none of them an `existing` one; the templates take turns.

    All that is good to begin with comes before what is drawn. They end where the space holds no
    others, or hardly any. Where the search is `learning` it draws others itself. Raises
    InvalidParameter as `check_space` does.
    """
    turns = [
        _endless(template, searched, Random(f"{seed}/{template.name}")) for template in templates
    ]
    seen = {identity(*each) for each in existing}

    def different(found: Iterable[Proposal]) -> Iterator[Proposal]:
        for each in found:
            key = identity(each.template.name, each.params)
            if key not in seen:
                seen.add(key)
                yield each

    yield from different(_again(templates, searched, seed, known.first))
    for turn in turns:
        yield from different(islice(turn, 1))
    for turn, template in zip(turns, templates):
        yield from different(islice(turn, len(template.starts)))
    yield from different(_again(templates, searched, seed, known.later))
    while turns and not learning:
        found = [(turn, next(different(islice(turn, IN_VAIN)), None)) for turn in turns]
        turns = [turn for turn, proposal in found if proposal]
        yield from (proposal for _, proposal in found if proposal)


def identity(template: str, params: Params) -> tuple[object, ...]:
    """Return what two configurations have in common if they are equal, for a set of many of them.

    >>> identity("linear", {"lr": 1.0, "depth": 2}) == identity("linear", {"depth": 2, "lr": 1})
    True
    """
    names = sorted(params)
    return template, *names, *map(params.__getitem__, names)


def _endless(template: Template, searched: Searched, random: Random) -> Iterator[Proposal]:
    """What is good to begin with, as far as the space has it; then what is drawn, without end."""
    head, rows, space = searched
    defaults = {field.name: field.default_for(head) for field in template.fields}
    for start in (*template.starts, {}) if rows >= MANY else ({}, *template.starts):
        values = _within(template, space, {**defaults, **start}, random)
        yield Proposal(
            template,
            template.params(head, rows, values),
            "good to begin with" if start else "usual values",
        )
    draws = draws_of(template, searched)
    while True:
        values = {name: shortened(draw.draw(random)) for name, draw in draws.items()}
        yield Proposal(template, template.params(head, rows, values), "drawn at random")


def draws_of(template: Template, searched: Searched) -> dict[str, Draw]:
    """What each field of a template is drawn from."""
    head, _, space = searched
    return {field.name: _wanted(field, space) or field.draw_for(head) for field in template.fields}


def _again(
    templates: Sequence[Template], searched: Searched, seed: int, known: Sequence[Predecessor]
) -> Iterator[Proposal]:
    """Those of these configurations whose template is tried; where it has other fields by now, as
    far as they go.
    """
    head, rows, space = searched
    named = {template.name: template for template in templates}
    for number, (name, params, origin, _) in enumerate(known):
        if template := named.get(name):
            usual = {field.name: field.default_for(head) for field in template.fields}
            values = {name: params.get(name, default) for name, default in usual.items()}
            with suppress(InvalidParameter):
                values = _within(template, space, values, Random(f"{seed}/{name}/{number}"))
                yield Proposal(template, template.params(head, rows, values), origin)


def _within(
    template: Template, space: Mapping[str, object], values: Mapping[str, object], random: Random
) -> dict[str, object]:
    """Values of fields, as far as the space has them, and others of it for the rest."""
    draws = {field.name: draw for field in template.fields if (draw := _wanted(field, space))}
    return {
        name: value if name not in draws or _holds(draws[name], value) else draws[name].draw(random)
        for name, value in values.items()
    }


def shortened(value: object) -> object:
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


def _holds(draw: Draw, value: object) -> bool:
    if isinstance(draw, Range):
        return isinstance(value, (int, float)) and draw.low <= value <= draw.high
    return value in draw.values
