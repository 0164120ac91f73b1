"""Dates in texts that are not read, with months by name or years of two digits.

Their templates are those of `to_date`, for the cast in a remark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cerebro_plpy.preprocessing.values.text_shapes import MONTHS

MONTH = f"(?:{MONTHS})"
MARK = "([-./ ])"
TEMPLATES = (
    (f"9{{1,2}}{MARK}{MONTH}\\1 ?9{{4}}", ("DD{0}Mon{0}YYYY",)),
    (f"9{{1,2}}{MARK}{MONTH}\\1 ?99", ("DD{0}Mon{0}YY",)),
    (f"{MONTH}( )9{{1,2}},? 9{{4}}", ("Mon DD, YYYY",)),
    ("9{1,2}([.])9{1,2}[.]99", ("DD.MM.YY",)),
    ("9{1,2}([-/])9{1,2}\\1 ?99", ("DD{0}MM{0}YY", "MM{0}DD{0}YY")),
)
"""Patterns of shapes, in which each digit is 9, and the templates that may fit."""


def find_templates(shapes: Sequence[str]) -> tuple[str, ...]:
    """Return the templates of dates that all shapes of texts have; empty if there are none.

    >>> find_templates(["9-Jan-9999", "99-Dec-9999"]), find_templates(["99/99/99"])
    (('DD-Mon-YYYY',), ('DD/MM/YY', 'MM/DD/YY'))
    >>> find_templates(["Jan 9, 9999", "99/99/99"])
    ()
    """
    for pattern, templates in TEMPLATES:
        matches = [re.fullmatch(f" *{pattern} *", shape) for shape in shapes]
        marks = {match and match[1] for match in matches}
        if len(marks) == 1 and None not in marks:
            (mark,) = marks
            return tuple(template.format(mark) for template in templates)
    return ()
