"""The commands that run the network of the open job on rows of a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cerebro_trainer.commands.job_handler import JobHandler
from cerebro_trainer.commands.permutation_importance import (
    PermutationRequest,
    format_attributions,
    read_positions,
    read_rows_and_target,
)
from cerebro_trainer.commands.prediction_columns import PredictionFormat
from cerebro_trainer.commands.prediction_jobs import PredictJob
from cerebro_trainer.commands.predictions import ClassSelection, reply_with_columns, tabulate
from cerebro_trainer.data import raw_rows
from cerebro_trainer.data.arrays import format_literal
from cerebro_trainer.data.buffers import Dataset, parse_buffer
from cerebro_trainer.errors import RequestError
from cerebro_trainer.programs.program import require_network
from cerebro_trainer.state.serialization import bytes_of
from cerebro_trainer.wire.fields import Header, text, typed
from cerebro_trainer.wire.frames import Array, Arrays, Bytes, Messages, reply


class RowRequestHandler:
    """Answers requests with the state of the open job.

    Args:
        check_peer: raises PeerGone if the backend has gone.
    """

    def __init__(
        self, jobs: JobHandler, datasets: Mapping[str, Dataset], check_peer: Callable[[], None]
    ) -> None:
        self._jobs = jobs
        self._datasets = datasets
        self._check_peer = check_peer

    def predict_rows(self, header: Header, payload: Bytes) -> Messages:
        """Predict raw rows; the reply has the selected classes of all outputs."""
        job = self._jobs.get_prediction_job_without_recipe()
        counts = typed(header, "classes", list)
        if not all(count is None or (type(count) is int and count >= 0) for count in counts):
            message = (
                f'"classes" must be numbers of classes, or null, by output; received {counts!r}'
            )
            raise RequestError(message[:300])
        inputs = raw_rows.decode_inputs(header, payload)
        with self._jobs.catch_errors():
            outputs = job.predict(inputs)
            table = tabulate(outputs, counts, ClassSelection.from_header(header))
        return reply(table.to_header())

    def predict_columns(self, header: Header, payload: Bytes) -> Messages:
        """Predict raw rows; the reply has the class or the number of each row as SQL arrays."""
        job = self._jobs.get_prediction_job()
        prediction_format = PredictionFormat.from_header(header)
        recipe = self._jobs.recipe
        if recipe is None:
            inputs = raw_rows.decode_inputs(header, payload)
        else:
            inputs = recipe.encode(header, payload)
        with self._jobs.catch_errors():
            (output,) = job.predict(inputs)
            if job.units is not None:
                output = job.units.scale.predict(output)
            return reply_with_columns(prediction_format.format_columns(output, job.calibration))

    def compute_features(self, header: Header, payload: Bytes) -> Messages:
        """Compute the activations of a layer for the rows of a buffer."""
        job = self._jobs.get_prediction_job()
        if self._jobs.is_sealed:
            raise RequestError(
                "the state of this job is sealed: what its layers give would tell it",
                sqlstate="42501",
            )
        buffer = parse_buffer(header, payload)
        with self._jobs.catch_errors():
            program = require_network(job.get_single_learner(), "features")
            features = program.compute_features(text(header, "layer"), buffer.inputs)
        return reply({"shape": list(features.shape)}, bytes_of(features))

    def permute_columns(self, header: Header, payload: Bytes) -> Messages:
        """Compute by how much the predictions get worse if a column of the table is permuted."""
        job = self._jobs.get_prediction_job_without_recipe()
        with self._jobs.catch_errors():
            inputs, target = read_rows_and_target(header, payload, self._datasets)
            if job.units is not None:
                target = job.units.scale.restore(target)
            request = PermutationRequest.from_header(header, inputs)
            losses_by_column = request.compute_losses(self._make_predictor(job), inputs, target)
            literals = [format_literal(losses) for losses in losses_by_column]
        return reply_with_columns(literals)

    def attribute(self, header: Header, payload: Bytes) -> Messages:
        """Compute the contributions of columns and patches to the predictions of raw rows."""
        job = self._jobs.get_prediction_job_without_recipe()
        inputs = raw_rows.decode_inputs(header, payload)
        columns = read_positions(header, "columns", inputs)
        patches = read_positions(header, "patches", inputs)
        with self._jobs.catch_errors():
            attributions = job.attribute(inputs, columns, patches)
            if job.units is not None:
                attributions = attributions.scaled(job.units.scale.deviation)
        return reply_with_columns(format_attributions(attributions))

    def _make_predictor(self, job: PredictJob) -> Callable[[Arrays], Array]:
        """Return a function that predicts rows, and stops when the backend has gone."""

        def predict(inputs: Arrays) -> Array:
            self._check_peer()
            (output,) = job.predict(inputs)
            if job.units is None:
                return job.calibration.correct(output)
            return job.units.scale.predict(output)

        return predict
