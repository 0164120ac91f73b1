"""SQL text together with the values of its placeholders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cerebro_plpy.database.queries import split_placeholders
from cerebro_plpy.database.sql.literals import literal

DOUBLE = "double precision"


class Expression(NamedTuple):
    """SQL text, and the values of its placeholders in order."""

    text: str
    values: tuple[object, ...] = ()

    def inlined(self) -> str:
        """Return the text with its values as literals, for statements without parameters."""
        parts = split_placeholders(self.text)
        return "".join(part + value for part, value in zip(parts, (*map(literal, self.values), "")))


def combined_values(expressions: Iterable[Expression]) -> tuple[object, ...]:
    """Return the values of several expressions, one behind another."""
    return tuple(value for expression in expressions for value in expression.values)


def array_of(
    elements: Sequence[Expression], element_type: str, missing: str | None = None
) -> Expression:
    """Return an array of expressions; `missing` is SQL that takes the place of NULL."""
    texts = [element.text for element in elements]
    if missing is not None:
        texts = [f"coalesce({text}, {missing})" for text in texts]
    return Expression(f"ARRAY[{', '.join(texts)}]::{element_type}[]", combined_values(elements))
