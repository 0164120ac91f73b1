"""What nobody sends who means well: values of every kind where another is expected, and bytes that
were changed.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

HUGE = (2**31 - 1, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**30)
NUMBERS = st.sampled_from((0, 1, -1, 2, *HUGE)) | st.floats()
TEXTS = st.sampled_from(
    ("", " ", "a'b", 'a"b', "a\nb", "ä\U0001f600", "\\", "%s", "{}", "NaN", "x" * 300)
) | st.text(max_size=8)
PLAIN = st.none() | st.booleans() | NUMBERS | TEXTS
JSON = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
"""Values that JSON has, and those numbers that Python's JSON has beside them."""


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """A JSON value of which one part, at any depth, is another or missing."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        rest = {name: part for name, part in value.items() if name != key}
        return rest if draw(st.integers(0, 3)) == 0 else {**rest, key: draw(changed(value[key]))}
    if isinstance(value, list) and value and draw(st.booleans()):
        place = draw(st.integers(0, len(value) - 1))
        middle = [] if draw(st.integers(0, 3)) == 0 else [draw(changed(value[place]))]
        return [*value[:place], *middle, *value[place + 1 :]]
    return draw(JSON)


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes that were overwritten, cut or lengthened somewhere."""
    place = draw(st.integers(0, max(0, len(data) - 1)))
    other = draw(st.binary(max_size=8))
    kept = draw(st.sampled_from((len(other), 0, len(data))))
    return data[:place] + other + data[place + kept :]
