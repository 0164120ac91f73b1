"""Numbers with their nouns, for messages: "1 row", "2 rows".

The trainer and the client have this module by links, so it imports nothing of a package.
"""

from __future__ import annotations

HISSES = ("s", "x", "z", "ch", "sh")
IRREGULAR_NOUNS = {"epoch": "epochs", "index": "indices", "leaf": "leaves"}
PLURAL_VERBS = {"is": "are", "was": "were", "has": "have", "does": "do", "goes": "go"}


def make_plural(noun: str) -> str:
    """Return the plural of an English noun.

    >>> make_plural("epoch"), make_plural("class"), make_plural("category"), make_plural("day")
    ('epochs', 'classes', 'categories', 'days')
    >>> make_plural("batch"), make_plural("training row"), make_plural("class index")
    ('batches', 'training rows', 'class indices')
    """
    adjectives, space, name = noun.rpartition(" ")
    if name in IRREGULAR_NOUNS:
        return f"{adjectives}{space}{IRREGULAR_NOUNS[name]}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(HISSES) else f"{noun}s"


def count_nouns(count: float | str, noun: str, verb: str = "") -> str:
    """Return a number with its noun, and with the form of a verb that goes with the number.

    Args:
        count: the number, or its text, such as "1,000".
        noun: the singular.
        verb: the form that goes with one, such as "is".

    >>> count_nouns(1, "epoch"), count_nouns(0, "epoch"), count_nouns(2, "class")
    ('1 epoch', '0 epochs', '2 classes')
    >>> count_nouns(1, "row", "is"), count_nouns(2.5, "second", "is"), count_nouns(2, "run", "ends")
    ('1 row is', '2.5 seconds are', '2 runs end')
    """
    number = f"{count:g}" if isinstance(count, float) else str(count)
    counted = f"1 {noun}" if number == "1" else f"{number} {make_plural(noun)}"
    return f"{counted} {match_verb(count, verb)}".rstrip()


def match_verb(count: float | str, verb: str) -> str:
    """Return the form of a verb that goes with a number, from the form that goes with one.

    >>> match_verb(1, "has"), match_verb(2, "has"), match_verb(0, "trains")
    ('has', 'have', 'train')
    """
    if str(count) in ("1", "1.0"):
        return verb
    return PLURAL_VERBS.get(verb, verb[:-1])
