"""Settings as the server serializes them are read as they are, or not at all; their values are
shown nowhere.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.database import custom_settings
from cerebro_plpy.database.custom_settings import (
    CustomSettings,
    escape_startup_options,
    parse_names,
)
from cerebro_plpy.errors import FeatureNotSupported, LimitExceeded, ObjectNotReady

SECRET = "marker of a secret"


class Entry(NamedTuple):
    """A setting as the server has it."""

    name: str
    value: str = ""
    file: str = ""
    line: int = 0
    source: int = 13
    context: int = 6
    role: int = 10


def serialize(entries: list[Entry], has_role: bool) -> bytes:
    """Write settings as SerializeGUCState of PostgreSQL does: with the role that has set each from
    15 on.
    """
    parts = []
    for each in entries:
        texts = b"".join(text.encode() + b"\0" for text in (each.name, each.value, each.file))
        line = struct.pack("=i", each.line) if each.file else b""
        role = struct.pack("=I", each.role) if has_role else b""
        parts.append(texts + line + struct.pack("=ii", each.source, each.context) + role)
    body = b"".join(parts)
    return struct.pack("@N", len(body)) + body


TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=20)
ENTRIES = st.lists(
    st.builds(
        Entry,
        name=st.from_regex(r"[a-zA-Zé_][a-z0-9_$é]{0,9}(\.[a-z_]{1,9}){0,2}", fullmatch=True),
        value=st.text(
            st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20
        ),
        file=TEXT,
        line=st.integers(0, 2**31 - 1),
        source=st.integers(1, 13),
        context=st.integers(0, 6),
        role=st.integers(0, 2**32 - 1),
    ),
    max_size=8,
)


@given(entries=ENTRIES, has_role=st.booleans(), spare=st.binary(max_size=30))
def test_names_are_read_of_either_layout(
    entries: list[Entry], has_role: bool, spare: bytes
) -> None:
    assert parse_names(serialize(entries, has_role) + spare) == [each.name for each in entries]


@given(entries=ENTRIES, has_role=st.booleans(), cut=st.integers(1, 60))
def test_a_buffer_that_is_cut_off_is_none(entries: list[Entry], has_role: bool, cut: int) -> None:
    assert parse_names(serialize(entries, has_role)[:-cut]) is None


@given(noise=st.binary(max_size=200), honest=st.booleans())
def test_noise_is_no_error(noise: bytes, honest: bool) -> None:
    names = parse_names(struct.pack("@N", len(noise)) + noise if honest else noise)
    assert names is None or all(name.isprintable() and name for name in names)


@pytest.mark.parametrize(
    "entry",
    [
        Entry(""),
        Entry("a\nb"),
        Entry("app.a", source=99),
        Entry("app.a", context=7),
        Entry("app.a", source=-1),
    ],
    ids=["no name", "a control character", "a source", "a context", "a negative source"],
)
@pytest.mark.parametrize("has_role", [False, True])
def test_entries_of_another_form_are_none(entry: Entry, has_role: bool) -> None:
    assert parse_names(serialize([Entry("app.b", SECRET), entry], has_role)) is None


def test_values_are_in_no_representation() -> None:
    settings = CustomSettings({"app.tenant_id": SECRET, "app.b": SECRET})
    assert (
        repr(settings) == str(settings) == f"{settings}" == "CustomSettings(app.b, app.tenant_id)"
    )
    assert SECRET not in repr(escape_startup_options(settings))
    assert settings == {"app.tenant_id": SECRET, "app.b": SECRET}


def test_what_is_too_long_is_refused_without_its_value() -> None:
    with pytest.raises(LimitExceeded) as caught:
        escape_startup_options({"app.long": SECRET * 500})
    error = caught.value
    assert "at most 8,000" in error.message
    assert SECRET not in f"{error.message}{error.hint}{error.detail}{error!r}{error.__context__!r}"


def test_bytes_are_counted_and_not_characters() -> None:
    room = 8000 - len("-c app.a= ")
    assert escape_startup_options({"app.a": "é" * (room // 2)})
    with pytest.raises(LimitExceeded, match=r"take 8,001 bytes"):
        escape_startup_options({"app.a": "é" * (room // 2) + "x"})


@pytest.mark.parametrize("name", ["app.a-b", "app.a=b"])
def test_names_that_cannot_be_passed_are_refused(name: str) -> None:
    with pytest.raises(FeatureNotSupported, match=r"app\.a") as caught:
        escape_startup_options({name: SECRET})
    assert SECRET not in str(caught.value)


def _split(options: str) -> list[str]:
    """Split startup options as the server does: at blanks, and a backslash takes the next character
    as it is.
    """
    found, word, position = [], "", 0
    while position < len(options):
        sign = options[position]
        if sign == "\\" and position + 1 < len(options):
            position += 1
            word += options[position]
        elif sign in " \t\n\v\f\r":
            found += [word] if word else []
            word = ""
        elif sign != "\\":
            word += sign
        position += 1
    return found + ([word] if word else [])


@given(
    values=st.dictionaries(
        st.sampled_from(["app.a", "app.b", "app c.d"]), TEXT | st.text(" \t\n\v\f\r\\'\"=a")
    )
)
def test_the_server_reads_options_as_the_values_were(values: dict[str, str]) -> None:
    options = " ".join(
        f"-c {name}={value}" for name, value in escape_startup_options(values).items()
    )
    words = _split(options)
    assert words[::2] == ["-c"] * len(values)
    assert dict(word.split("=", 1) for word in words[1::2]) == values


class Caller:
    """A session in which one setting can be read by privileged roles alone."""

    def rows(self, statement: str, *values: object) -> list[dict[str, object]]:
        return [
            {"name": name, "is_default": True, "context": None}
            for name in ("app.a", "app.hidden", "app.unset")
        ]

    def value(self, statement: str, name: str) -> str | None:
        return {"app.a": SECRET, "app.unset": None}[name]

    def find_error(self, work: Callable[[], object]) -> Exception | None:
        try:
            work()
        except KeyError as error:
            error.spidata = (self.code, None, None)  # type: ignore[attr-defined]
            return error
        return None

    code = 16797828  # 42501 as PostgreSQL packs it


def test_a_setting_that_the_caller_may_not_read_is_left_out() -> None:
    caller: Any = Caller()
    assert custom_settings.read_custom_settings(caller) == {"app.a": SECRET, "app.unset": ""}


def test_any_other_error_ends_the_call() -> None:
    caller: Any = Caller()
    caller.code = 0
    with pytest.raises(KeyError):
        custom_settings.read_custom_settings(caller)


@given(
    settings=st.dictionaries(st.sampled_from(["app.a", "app.b"]), TEXT),
    read=st.dictionaries(st.sampled_from(["app.a", "app.b"]), TEXT),
)
def test_a_reader_with_other_values_is_refused_without_them(
    settings: dict[str, str], read: dict[str, str]
) -> None:
    class Reader:
        def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
            return list(read.items())

    different = sorted(name for name in settings if settings[name] != read.get(name))
    if not different:
        custom_settings.check_custom_settings(Reader(), settings)
        return
    with pytest.raises(ObjectNotReady) as caught:
        custom_settings.check_custom_settings(Reader(), settings)
    assert f"custom settings {', '.join(different)} than" in caught.value.message
