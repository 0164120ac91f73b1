"""A model in the trainer of this session, which tells of block after block of rows; others may use
the trainer between.

While the trainer computes one block the next one is read. A query can be left in the middle, where
nothing can be said to the trainer any more; so each request says how long it may wait for the next
one. A trainer that dies is replaced, once in a call. The caller has no answer of that block yet, so
no row comes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cerebro_plpy.errors import CerebroError, ConfigFailure, DatatypeMismatch, TrainerFailure
from cerebro_plpy.records import dataclass
from cerebro_plpy.trainer_client import ownership, segment_functions, trainer_lock
from cerebro_plpy.trainer_client.connection import Link
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.request_schema import Header


@dataclass(frozen=True)
class Told:
    """What a trainer needs to tell of rows by a model: how it is started, the job, the state, and
    what is asked.

    `asked` is the header of each request but for its rows; `fill` begins the job in the trainer
    that this session has, and sends the weights, each time that they are needed.
    """

    spec: TrainerSpec
    idle_seconds: int
    asked: Header
    fill: Callable[[], None]


class Predictor:
    """See the module; `check` is called while waiting for the trainer."""

    def __init__(self, gd: dict[str, Any], told: Told, check: Callable[[], None]) -> None:
        self._session = gd
        self._told = told
        self._check = check
        self._link: Link | None = None
        self._awaited: Link | None = None
        self._answer: list[bytes] | CerebroError | None = None
        self._block: tuple[int, Sequence[bytes]] | None = None
        self._replaced = False

    def ask(self, rows: int, columns: Sequence[bytes]) -> None:
        """Send a block of so many rows, by the bytes of each column; `answer` must have been called
        before another.
        """
        try:
            self._send(rows, columns)
        except TrainerFailure:
            if self._replaced:
                raise
            self._replaced = True
            self._send(rows, columns)
        self._block = rows, columns

    def _send(self, rows: int, columns: Sequence[bytes]) -> None:
        link = self._ready()
        lengths = [len(column) for column in columns]
        own = {"idle_seconds": self._told.idle_seconds or None, "rows": rows, "lengths": lengths}
        link.post({**self._told.asked, **own}, *columns)
        self._awaited = link

    def answer(self) -> list[bytes]:
        """What is told of the block that was sent: the columns, as texts of arrays."""
        self.settle()
        block, self._block = self._block, None
        if isinstance(self._answer, TrainerFailure) and not self._replaced and block is not None:
            self._replaced, self._answer = True, None
            self._send(*block)
            self.settle()
        answer, self._answer = self._answer, None
        if isinstance(answer, CerebroError):
            raise answer
        assert answer is not None, "no block was sent"
        return answer

    def settle(self) -> None:
        """Take the answer that the trainer owes, if any: who wants the trainer now has to find it
        free.
        """
        if self._awaited is None:
            return
        link, self._awaited = self._awaited, None
        try:
            answer, payload = link.reply()
            self._answer = list(_split(bytes(payload), answer["lengths"]))
        except ConfigFailure as error:  # it is not one of many that others outlive
            self._answer = DatatypeMismatch(error.message, detail=error.detail, hint=error.hint)
            self._link = None
        except CerebroError as error:
            self._answer = error
            self._link = None  # an error ends the job

    def end(self) -> None:
        """No further block comes, and the trainer waits for the next call; nothing is asked of the
        database here.
        """
        self._replaced = False
        if not trainer_lock.held(self._session, self):
            return
        if not self._told.idle_seconds:
            self._session.pop(trainer_lock.KEY)
            segment_functions.stop_trainer(self._session)
        elif self._link is not None and self._awaited is None and self._link.alive():
            self._link.rest(self._told.idle_seconds)

    def _ready(self) -> Link:
        """The session's trainer, with this model in it."""
        link: Link | None = self._session.get(segment_functions.KEY)
        held = trainer_lock.held(self._session, self) and ownership.owned(self._session)
        if held and link is not None and link is self._link and link.alive():
            return link
        link = segment_functions.start_trainer(self._check, self._session, self._told.spec)
        self._told.fill()
        trainer_lock.hold(self._session, self)
        self._link = link
        return link


def _split(payload: bytes, lengths: Sequence[int]) -> Iterator[bytes]:
    offset = 0
    for length in lengths:
        yield payload[offset : offset + length]
        offset += length
