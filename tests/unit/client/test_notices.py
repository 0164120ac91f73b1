"""Messages of the server are seen without any configuration, and logged where logging is set up."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db.display import notices
from cerebro_db.display.notices import NoticePrinter
from cerebro_plpy.database.call_status import CallStatus

NOTICE = "NOTICE:  column ticket is left out: all values differ"
STATUS = "NOTICE:  12 s of 300 s: training, 2 of 11 configurations done"


@pytest.fixture
def logger(monkeypatch: pytest.MonkeyPatch) -> Iterator[logging.Logger]:
    """A logger of its own, which has no handler: pytest gives the root one."""
    logger = logging.Logger("tried", logging.INFO)
    monkeypatch.setattr(notices, "LOG", logger)
    yield logger


@pytest.mark.parametrize(
    "message, printed",
    [
        (NOTICE, True),
        ("WARNING:  the disk is nearly full", True),
        ("INFO:  epoch 1 of 10", False),
        (STATUS, True),
    ],
)
def test_notices_and_warnings_are_printed(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str], message: str, printed: bool
) -> None:
    NoticePrinter().handle(message)
    output = capsys.readouterr()
    assert output.out == "" and output.err == (f"{message}\n" if printed else "")


def test_lines_about_progress_are_recognised() -> None:
    """As the server writes them."""
    lines: list[str] = []
    status = CallStatus(lines.append)
    status.begin(300.0)
    assert len(lines) == 1 and notices.STATUS.match(f"NOTICE:  {lines[0]}")
    assert not notices.STATUS.match(NOTICE)


def test_under_a_bar_only_lines_about_progress_are_left_out(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    printer = NoticePrinter()
    with printer.hide_status(True):
        printer.handle(STATUS)
        printer.handle(NOTICE)
        printer.handle(STATUS.replace("NOTICE", "WARNING"))
    printer.handle(STATUS)
    assert capsys.readouterr().err.splitlines() == [
        NOTICE,
        STATUS.replace("NOTICE", "WARNING"),
        STATUS,
    ]


def test_a_logger_with_a_handler_has_the_messages_that_it_takes(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign,assignment]
    logger.addHandler(handler)
    for message in (NOTICE, "WARNING:  slow", "INFO:  epoch 1 of 10"):
        NoticePrinter().handle(message)
    levels = [record.levelno for record in records]
    assert levels == [logging.INFO, logging.WARNING, logging.INFO]
    assert capsys.readouterr().err == ""


def test_a_logger_for_warnings_alone_hides_no_notice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = logging.Logger("tried", logging.WARNING)
    logger.addHandler(logging.NullHandler())
    monkeypatch.setattr(notices, "LOG", logger)
    for message in (NOTICE, "WARNING:  slow"):
        NoticePrinter().handle(message)
    assert capsys.readouterr().err == f"{NOTICE}\n"


@given(st.text())
def test_no_message_commands_a_terminal(text: str) -> None:
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notices, "LOG", logging.Logger("tried"))
        patch.setattr("builtins.print", lambda line, **_: lines.append(line))
        NoticePrinter().handle(f"NOTICE:  {text}")
    assert all(letter.isprintable() or letter == "\n" for line in lines for letter in line)
    assert len(lines) == 1
