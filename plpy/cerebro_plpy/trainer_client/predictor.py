"""A model in the trainer of this session, which predicts block after block of rows.

Others may use the trainer between two blocks. While the trainer computes one block, the next one is
read. A query may be abandoned without notice to the trainer. Therefore each request limits how long
the trainer waits for the next one. A trainer that dies is replaced once in a call. Its block has
not been returned yet, so that no row is returned twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from cerebro_plpy.database.platform_protocol import Check, Globals
from cerebro_plpy.errors import CerebroError, ConfigFailure, DatatypeMismatch, TrainerFailure
from cerebro_plpy.records import dataclass
from cerebro_plpy.trainer_client import ownership, segment_functions, trainer_lock
from cerebro_plpy.trainer_client.connection import TrainerConnection
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.request_schema import Header


@dataclass(frozen=True)
class PredictorSpec:
    """Everything that a trainer needs to predict with a model."""

    spec: TrainerSpec
    idle_seconds: int
    header: Header  # of each request, without its rows
    begin: Callable[[], None]  # begins the job in the session's trainer and sends the weights


class Predictor:
    """See the module.

    Args:
        gd: global data of the session.
        check: is called while waiting for the trainer; may raise.
    """

    def __init__(self, gd: Globals, spec: PredictorSpec, check: Check) -> None:
        self._session = gd
        self._spec = spec
        self._check = check
        self._link: TrainerConnection | None = None
        self._pending: TrainerConnection | None = None
        self._answer: list[bytes] | CerebroError | None = None
        self._block: tuple[int, Sequence[bytes]] | None = None
        self._has_replaced_trainer = False

    def send_block(self, rows: int, columns: Sequence[bytes]) -> None:
        """Send a block of rows; `receive_block` must have been called for the block before.

        Args:
            rows: number of rows.
            columns: bytes of each column.
        """
        try:
            self._send(rows, columns)
        except TrainerFailure:
            if self._has_replaced_trainer:
                raise
            self._has_replaced_trainer = True
            self._send(rows, columns)
        self._block = (rows, columns)

    def _send(self, rows: int, columns: Sequence[bytes]) -> None:
        link = self._get_trainer()
        fields = {
            "idle_seconds": self._spec.idle_seconds or None,
            "rows": rows,
            "lengths": [len(column) for column in columns],
        }
        link.post({**self._spec.header, **fields}, *columns)
        self._pending = link

    def receive_block(self) -> list[bytes]:
        """Return the columns of predictions for the block that was sent, as texts of arrays."""
        self.fetch_pending()
        block = self._block
        self._block = None
        has_failed = isinstance(self._answer, TrainerFailure)
        if has_failed and not self._has_replaced_trainer and block is not None:
            self._has_replaced_trainer = True
            self._answer = None
            self._send(*block)
            self.fetch_pending()
        answer = self._answer
        self._answer = None
        if isinstance(answer, CerebroError):
            raise answer
        assert answer is not None, "no block was sent"
        return answer

    def fetch_pending(self) -> None:
        """Fetch the pending answer of the trainer, so that others can use the trainer."""
        if self._pending is None:
            return
        link = self._pending
        self._pending = None
        try:
            answer, payload = link.receive_reply()
            self._answer = list(_split(bytes(payload), answer["lengths"]))
        except ConfigFailure as error:  # here it does not concern one of several configurations
            self._answer = DatatypeMismatch(error.message, detail=error.detail, hint=error.hint)
            self._link = None
        except CerebroError as error:
            self._answer = error
            self._link = None  # an error ends the job

    def end(self) -> None:
        """Let the trainer wait for the next call, or end it; no statement is run here."""
        self._has_replaced_trainer = False
        if not trainer_lock.is_holder(self._session, self):
            return
        if not self._spec.idle_seconds:
            self._session.pop(trainer_lock.KEY)
            segment_functions.stop_trainer(self._session)
        elif self._link is not None and self._pending is None and self._link.is_alive():
            self._link.park(self._spec.idle_seconds)

    def _get_trainer(self) -> TrainerConnection:
        """Return the session's trainer, after loading this model if necessary."""
        link: TrainerConnection | None = self._session.get(segment_functions.KEY)
        is_mine = trainer_lock.is_holder(self._session, self) and ownership.is_owner(self._session)
        if is_mine and link is not None and link is self._link and link.is_alive():
            return link
        link = segment_functions.start_trainer(self._check, self._session, self._spec.spec)
        self._spec.begin()
        trainer_lock.acquire(self._session, self)
        self._link = link
        return link


def _split(payload: bytes, lengths: Sequence[int]) -> Iterator[bytes]:
    for length, end in zip(lengths, accumulate(lengths)):
        yield payload[end - length : end]
