"""Comments of functions and views, which psql shows (`\\df+`, `\\dv+`), are plain English."""

from __future__ import annotations

import re

import pytest
from sources import sql_files

COMMENT = re.compile(
    r"^COMMENT ON (?:FUNCTION|VIEW) (cerebro\.\w+)(?:\([^']*\))?\s+IS\s+'((?:[^']|'')*)'",
    re.MULTILINE,
)
COMMENTS = [match.groups() for text in sql_files().values() for match in COMMENT.finditer(text)]
MOST_WORDS = 30
QUESTION = re.compile(
    r"(?:^|[.:;] +)(?:how|what|which|who|whose|why|whether|where)\b", re.IGNORECASE
)
NOBODY = re.compile(r"\b(?:who|whom|nobody|somebody)\b", re.IGNORECASE)


def test_there_are_comments() -> None:
    assert len(COMMENTS) > 60


@pytest.mark.parametrize(("name", "comment"), COMMENTS, ids=[name for name, _ in COMMENTS])
def test_a_comment_names_its_subject_first(name: str, comment: str) -> None:
    assert not QUESTION.search(comment)
    assert not NOBODY.search(comment)
    lengths = [len(part.split()) for part in re.split(r"[.:;](?: |$)", comment)]
    assert max(lengths) <= MOST_WORDS, name
