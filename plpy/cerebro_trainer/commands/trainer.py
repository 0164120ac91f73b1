"""The command loop of a trainer, and its handling of errors.

Several requests without a reply may follow each other. An error in one of them is deferred: the
requests after it are ignored, and the next request with a reply is answered with the error.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TypeAlias

from cerebro_trainer.commands import gpus, prediction_columns
from cerebro_trainer.commands.job_handler import JobHandler
from cerebro_trainer.commands.program_cache import ProgramCache
from cerebro_trainer.commands.row_requests import RowRequestHandler
from cerebro_trainer.data import recipe_values
from cerebro_trainer.data.buffers import Dataset, parse_buffer
from cerebro_trainer.data.packing import BufferPacker
from cerebro_trainer.errors import OutOfMemory, RequestError, TrainerError
from cerebro_trainer.wire.fields import Header, integer, number, optional, text
from cerebro_trainer.wire.frames import Bytes, Connection, Frame, Message, Messages, PeerGone, reply
from cerebro_trainer.wire.prefetch import Prefetcher

Handler: TypeAlias = Callable[[Header, Bytes], Messages]


UNANSWERED = ("reset", "open", "buffer", "block", "state")
"""Requests without a reply; an error of theirs is the reply to the next request."""


class Trainer:
    """Serves one connection.

    Args:
        programs: None for a trainer without a framework, which packs and caches data only.
    """

    def __init__(
        self, connection: Connection, prefetcher: Prefetcher, programs: ProgramCache | None
    ) -> None:
        self._connection = connection
        self._prefetcher = prefetcher
        self._datasets: dict[str, Dataset] = {}
        self._packer = BufferPacker()
        self._deferred_error: TrainerError | None = None
        self._has_failed = False
        # Limit for the time to the next request; None during a call, which may take hours
        self._max_idle_seconds: float | None = None
        self._list_gpus = gpus.list_gpus
        self._jobs: JobHandler | None = None
        self._commands = self._make_basic_commands()
        if programs is not None:
            self._list_gpus = programs.framework.describe_gpus
            self._jobs = JobHandler(programs, self._datasets, connection.check_peer)
            self._commands |= self._make_job_commands(self._jobs)
        prefetcher.handle_concurrently = self.handle_concurrently

    def _make_basic_commands(self) -> dict[str, Handler]:
        return {
            "reset": self._reset,
            "open": self._open_dataset,
            "buffer": self._add_buffer,
            "close": self._close_dataset,
            "block": self._add_block,
            "pack": self._pack,
            "suggest": self._suggest,
            "gpus": self._describe_gpus,
        }

    def _make_job_commands(self, jobs: JobHandler) -> dict[str, Handler]:
        rows = RowRequestHandler(jobs, self._datasets, self._connection.check_peer)
        return {
            "state": jobs.load_chunk,
            "begin": jobs.begin,
            "finish": jobs.finish,
            "state_get": jobs.send_state,
            "results": jobs.compute_results,
            "rows": rows.predict_rows,
            "outputs": jobs.send_outputs,
            "features": rows.compute_features,
            "tell": self._limit_idle_time(rows.predict_columns),
            "permute": self._limit_idle_time(rows.permute_columns),
            "attribute": self._limit_idle_time(rows.attribute),
        }

    def serve(self) -> None:
        """Answer requests until the backend goes.

        The method returns if another session may reuse the process.

        Raises:
            PeerGone: the process must not be reused.
        """
        while True:
            try:
                frame = self._prefetcher.receive(self._max_idle_seconds)
            except OutOfMemory as error:
                self._fail(error)
            except PeerGone as error:
                if error.is_idle or not self._is_reusable:
                    raise
                recipe_values.parse_recipe.cache_clear()
                prediction_columns.format_labels.cache_clear()
                return
            else:
                self._max_idle_seconds = None
                self._handle(frame)

    def handle_concurrently(self, frame: Frame) -> bool:
        """Send a state that is still to be stored while a job runs.

        The messages have the number of the request in `aside`.
        """
        header = frame.header
        if self._jobs is None or header.get("do") != "state_get" or "aside" not in header:
            return False
        request_number = {"aside": header["aside"]}
        try:
            for message in self._jobs.send_unstored_state(header):
                self._connection.send(
                    Message({**message.header, **request_number}, *message.payload)
                )
        except TrainerError as error:
            self._connection.send(Message({**error.to_header(), **request_number}))
        return True

    @property
    def _is_reusable(self) -> bool:
        """True if the session had finished with the process and its data can be overwritten."""
        if self._max_idle_seconds is None or self._has_failed:
            return False
        return self._jobs is None or not self._jobs.has_private_data

    def _handle(self, frame: Frame) -> None:
        name = str(frame.header.get("do"))
        if self._deferred_error is None:
            try:
                handler = self._find_handler(name)
                for message in handler(frame.header, frame.payload):
                    self._connection.send(message)
            except MemoryError:
                self._fail(OutOfMemory("memory ran out while handling a request"))
            except TrainerError as error:
                self._fail(error)
        is_answered = name not in UNANSWERED or name not in self._commands
        if self._deferred_error is not None and is_answered:
            self._connection.send(Message(self._deferred_error.to_header()))
            self._deferred_error = None

    def _find_handler(self, name: str) -> Handler:
        if name not in self._commands:
            raise RequestError(
                f"unknown request {name!r}; this trainer knows {', '.join(self._commands)}",
                sqlstate="0A000",
                hint=None if self._jobs else "It was started without a framework.",
            )
        return self._commands[name]

    def _fail(self, error: TrainerError) -> None:
        """Defer an error to the next reply, and end the open job, whose state is lost."""
        self._deferred_error = error
        self._has_failed = True
        self._packer = BufferPacker()
        if self._jobs is not None:
            self._jobs.abandon()

    def _reset(self, header: Header, payload: Bytes) -> Messages:
        """Release data and states at the end or at the beginning of a call; keep programs."""
        self._max_idle_seconds = optional(header, "idle_seconds", number)
        self._datasets.clear()
        self._packer = BufferPacker()
        if self._jobs is not None:
            self._jobs.reset()
        return ()

    def _limit_idle_time(self, run: Handler) -> Handler:
        """Set the idle time of a request in the middle of a query, which may be left there."""

        def run_with_limit(header: Header, payload: Bytes) -> Messages:
            self._max_idle_seconds = optional(header, "idle_seconds", number)
            return run(header, payload)

        return run_with_limit

    def _open_dataset(self, header: Header, payload: Bytes) -> Messages:
        """Open a dataset, which may use the part of the cache that the others leave."""
        key = text(header, "dataset")
        self._datasets.pop(key, None)
        cached_bytes = sum(dataset.cached_bytes for dataset in self._datasets.values())
        cache_bytes = integer(header, "cache_bytes", minimum=0)
        self._datasets[key] = Dataset(max(0, cache_bytes - cached_bytes))
        return ()

    def _add_buffer(self, header: Header, payload: Bytes) -> Messages:
        key = text(header, "dataset")
        buffer = parse_buffer(header, payload)
        if self._jobs is None or not self._jobs.process_streamed(key, buffer, header):
            self._get_dataset(key).add(buffer)
        return ()

    def _close_dataset(self, header: Header, payload: Bytes) -> Messages:
        dataset = self._get_dataset(text(header, "dataset"))
        dataset.is_closed = True
        return reply(dataset.summarize())

    def _add_block(self, header: Header, payload: Bytes) -> Messages:
        self._packer.add(header, payload)
        return ()

    def _pack(self, header: Header, payload: Bytes) -> Messages:
        """Return the buffer of all blocks since the last one, or only its shapes."""
        packer = self._packer
        self._packer = BufferPacker()
        shapes = packer.get_shapes()
        columns = [] if header.get("shapes_only") is True else list(packer.take_columns(header))
        lengths = [column.nbytes for column in columns]
        payload_parts = [column.data for column in columns]
        return reply({"shapes": shapes, "lengths": lengths}, *payload_parts)

    def _suggest(self, header: Header, payload: Bytes) -> Messages:
        # Imported here, because Optuna is optional.
        suggestions = importlib.import_module("cerebro_trainer.commands.suggestions")
        return reply({"points": suggestions.suggest(header)})

    def _describe_gpus(self, header: Header, payload: Bytes) -> Messages:
        return reply({"gpus": self._list_gpus()})

    def _get_dataset(self, key: str) -> Dataset:
        if key not in self._datasets:
            raise RequestError(f"dataset {key!r} was not opened", sqlstate="55000")
        return self._datasets[key]
