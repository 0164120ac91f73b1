"""The functions of MADlib 2.1 for deep learning, form by form, and what its users expect of
them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """One form of a function: the types of its arguments."""

    function: str
    types: tuple[str, ...]


def forms(function: str, types: str, least: int) -> list[Form]:
    """All forms that have at least so many of these arguments."""
    given = tuple(types.split(", "))
    return [Form(function, given[:n]) for n in range(least, len(given) + 1)]


V, N, B, T = "varchar", "integer", "boolean", "text"
PREDICT, OWN = f"{V}, {V}, {V}, {V}, {V}", f"{V}, {N}, {V}, {V}, {V}, {V}"
FORMS = [
    *forms("load_keras_model", f"{V}, json, bytea, {T}, {T}", 2),
    *forms("delete_keras_model", f"{V}, {N}", 2),
    *forms("training_preprocessor_dl", f"{V}, {V}, {V}, {V}, {N}, real, {N}[], {T}", 4),
    *forms("validation_preprocessor_dl", f"{V}, {V}, {V}, {V}, {V}, {N}, {T}", 5),
    *forms("load_model_selection_table", f"{V}, {V}, {N}[], {V}[], {V}[], {V}", 5),
    *forms("generate_model_configs", f"{V}, {V}, {N}[], {V}, {V}, {V}, {N}, {N}, {V}", 5),
    *forms("madlib_keras_fit_multiple_model",
    f"{V}, {V}, {V}, {N}, {B}, {V}, {N}, {B}, {V}, {V}, {B}", 5),
    *forms("madlib_keras_fit",
    f"{V}, {V}, {V}, {N}, {V}, {V}, {N}, {B}, {V}, {N}, {B}, {V}, {V}, {V}", 7),
    *forms("madlib_keras_evaluate", f"{V}, {V}, {V}, {B}, {N}", 3),
    *forms("madlib_keras_predict", f"{PREDICT}, {V}, {B}, {N}", 5),
    *forms("madlib_keras_predict", f"{PREDICT}, {N}, {B}, {N}", 6),
    *forms("madlib_keras_predict", f"{PREDICT}, double precision, {B}, {N}", 6),
    *forms("madlib_keras_predict_byom", f"{OWN}, {V}, {B}, {T}[], double precision, {N}", 6),
    *forms("madlib_keras_predict_byom", f"{OWN}, {N}, {B}, {T}[], double precision", 7),
    *forms("madlib_keras_predict_byom", f"{OWN}, double precision, {B}, {T}[], double precision",
    7),
    *forms("madlib_keras_automl",
           f"{V}, {V}, {V}, {V}, {N}[], {V}, {V}, {V}, {V}, {N}, {V}, {B}, {V}, {N}, {V}, {V}, {B}",
           7),
    *forms("hyperband_schedule", f"{V}, {N}, {N}, {N}", 2),
    *forms("load_custom_function", f"{V}, bytea, {T}, {T}", 3),
    Form("delete_custom_function", (V, N)),
    Form("delete_custom_function", (V, T)),
    *forms("load_top_k_accuracy_function", f"{V}, {N}", 2),
    *forms("gpu_configuration", f"{T}, {T}", 1),
]  # fmt: skip
EXPECTED = (
    "calls by position, with as few arguments as MADlib asks for, and by name",
    "packed tables of training_preprocessor_dl",
    "configurations that were generated, loaded or written by hand",
    "parameter strings in any order and with any spaces; lr",
    "names with a schema and quotes",
    "NULL for an argument means its default",
    "columns and types of the three output tables; more only at the end",
    "one row for each configuration; mst_key stays",
    "model_weights are flat float32, for Keras and for load_keras_model",
    "model_size in KB",
    "metrics_iters: every f-th iteration and the last",
    "arrays of metrics as long as metrics_iters; the final value is the last",
    "validation columns are NULL without a validation table",
    "metrics_elapsed_time grows",
    "metrics_type and loss_type as they were written",
    "name, description, times and version in the summary",
    "num_classes counts classes",
    "what predictions need is in the summary",
    "every model sees every partition once per iteration",
    "iterations times epochs are passes",
    "sequential SGD, with and without caching",
    "warm start goes by mst_key",
    "weights of the architecture table are the start",
    "evaluating gives the final numbers",
    "a fixed order of visits",
    "a loss that is no number does not stop the others",
    "settings are restored, nothing temporary stays, outputs are logged",
    "evaluate writes one row",
    "predict: all classes, the best, the first n, those above a threshold",
    "the id column keeps name and type; classes are text, NULL among them",
    "mst_key is needed for several models and refused for one",
    "predict needs the model tables only",
    "predictions are normalised as training was",
    "models of one's own predict",
    "grid and random search, three distributions, random_state, appending",
    "Hyperband and Hyperopt; the best configuration stays and is told",
    "input tables that are NULL, missing or empty",
    "output tables that exist",
    "input that was not preprocessed",
    "a selection table without summary",
    "unknown losses, metrics, optimizers and keys are named",
    "iterations and frequency out of range",
    "an input shape that does not match",
    "a GPU that is not there",
    "functions explain themselves",
    "one message per iteration, with the numbers",
    "users without privileges train; only a superuser registers functions; nothing of a user's "
    "table is unpickled",
)
"""What MADlib's users expect, by number from 1: tests that show it bear it as `checklist(number,
…)`.
"""
