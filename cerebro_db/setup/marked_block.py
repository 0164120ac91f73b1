"""A marked block in pg_hba.conf or pg_ident.conf: reading, replacing and removing it.

All functions are pure. A file is text whose lines end with a line feed; bytes that are not UTF-8
are surrogates, so that they come out as they went in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cerebro_db.errors import InvalidName, ObjectNotReady
from cerebro_db.nouns import count_nouns

BEGIN = "# cerebro-db setup: begin"
END = "# cerebro-db setup: end"
REASON = "# Worker sessions of cerebro_db log in here; everybody else does as before."
MAP = "cerebro_setup"  # ours alone: entries of an administrator under it would count, too
NAME = r'"((?:[^"]|"")*)"'
HBA_LINE = re.compile(rf"local  {NAME}  {NAME}  peer  map={MAP}")
IDENT_LINE = re.compile(rf"{NAME}  {NAME}  {NAME}")
LOCAL = re.compile(r"\s*\"?local\"?[\s,]")
INCLUDE = re.compile(r"^\s*include(_if_exists|_dir)?\s", re.MULTILINE)
MANAGER = re.compile(r"^\s*#.*\b(do not edit|managed by|patroni|puppet|ansible|chef|salt)\b", re.I)


class HbaEntry(NamedTuple):
    """A login that the map decides: a line of pg_hba.conf."""

    database: str
    role: str

    def __str__(self) -> str:
        return f"local  {_quote(self.database)}  {_quote(self.role)}  peer  map={MAP}"


class IdentEntry(NamedTuple):
    """A system user who may log in as a role: a line of pg_ident.conf."""

    map: str
    system_user: str
    role: str

    def __str__(self) -> str:
        return f"{_quote(self.map)}  {_quote(self.system_user)}  {_quote(self.role)}"


def read_hba(text: str) -> list[HbaEntry]:
    """Return the entries of the block in pg_hba.conf."""
    return [HbaEntry(*fields) for fields in _read(text, HBA_LINE)]


def read_ident(text: str) -> list[IdentEntry]:
    """Return the entries of the block in pg_ident.conf."""
    return [IdentEntry(*fields) for fields in _read(text, IDENT_LINE)]


def replace_block(text: str, entries: Iterable[object]) -> str:
    """Return the text with these entries as its block; without a block if there are no entries.

    The block lies above the first `local` line and the comment of that line, because the first
    line that matches decides. All other bytes stay.
    """
    start, end = _find(text)
    remainder = text[:start] + text[end:]
    block = format_block(entries)
    if not block:
        return remainder
    place = _find_place(remainder)
    return remainder[:place] + block + remainder[place:]


def format_block(entries: Iterable[object]) -> str:
    """Return the block with these entries; an empty text if there are no entries."""
    lines = sorted({str(entry) for entry in entries})
    if not lines:
        return ""
    return "".join(f"{line}\n" for line in (BEGIN, REASON, *lines, END))


def find_manager(text: str) -> str | None:
    """Return the line that leaves the file to other programs or other files, if there is one."""
    include = INCLUDE.search(text)
    if include is not None:
        return text[include.start() :].strip().split("\n")[0]
    for line in text.split("\n"):
        if MANAGER.match(line):
            return line.strip()
    return None


def _read(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, ...]]:
    start, end = _find(text)
    for line in text[start:end].split("\n"):
        if line in (BEGIN, REASON, END, ""):
            continue
        match = pattern.fullmatch(line)
        if match is None:
            raise ObjectNotReady(
                f"the block of cerebro-db has a line that somebody else wrote: {line!r}",
                hint=f"Move it out of the lines {BEGIN!r} and {END!r}.",
            )
        yield tuple(name.replace('""', '"') for name in match.groups())


def _find(text: str) -> tuple[int, int]:
    """Return start and end of the block; the end twice if there is no block."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if line == BEGIN]
    ends = [number for number, line in enumerate(lines) if line == END]
    if not starts and not ends:
        return len(text), len(text)
    if len(starts) != 1 or len(ends) != 1 or ends < starts:
        raise ObjectNotReady(
            f"the block of cerebro-db is damaged: {count_nouns(len(starts), 'line', 'begins')} "
            f"one, and {len(ends)} end one",
            hint=f"Repair the lines {BEGIN!r} and {END!r}, or remove the block.",
        )
    offsets = _offsets(lines)
    return offsets[starts[0]], min(offsets[ends[0] + 1], len(text))


def _find_place(text: str) -> int:
    """Return the position of the first `local` line, with the comment above it; else the end."""
    lines = text.split("\n")
    offsets = _offsets(lines)
    comment: int | None = None
    is_continuation = False
    for number, line in enumerate(lines):
        if not is_continuation:
            if LOCAL.match(line):
                return offsets[number if comment is None else comment]
            if line.lstrip().startswith("#"):
                comment = number if comment is None else comment
            else:
                comment = None
        is_continuation = line.rstrip("\r").endswith("\\")
    # A block behind a line that has no end would be part of that line.
    is_whole = text.endswith("\n") and not text.rstrip("\r\n").endswith("\\")
    return len(text) if is_whole else 0


def _offsets(lines: Sequence[str]) -> list[int]:
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    return offsets


def check_name(name: str) -> None:
    """Check that a name can stand in the two files.

    Raises:
        InvalidName: it cannot; a `/` would begin a pattern.
    """
    if name.startswith("/") or set(name) & set("\n\r\\\0"):
        raise InvalidName(
            f"pg_hba.conf and pg_ident.conf cannot have the name {name!r}",
            hint="Choose a name without a backslash or a line break that does not begin with /.",
        )


def _quote(name: str) -> str:
    """Return a name in quotes, in which keywords such as `all` are names."""
    check_name(name)
    return '"' + name.replace('"', '""') + '"'
