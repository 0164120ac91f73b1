"""The functions of MADlib 2.1 for deep learning, form by form, and where ours differ: docs/madlib-coverage.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """One form of a function: the types of its arguments, and what a user of MADlib will notice."""

    function: str
    types: tuple[str, ...]
    differences: str = ""


def forms(function: str, types: str, least: int, differences: str = "") -> list[Form]:
    """All forms that have at least so many of these arguments; the differences stand at the first."""
    given = tuple(types.split(", "))
    counts = range(least, len(given) + 1)
    return [Form(function, given[:n], differences if n == least else "") for n in counts]


V, N, B, T = "varchar", "integer", "boolean", "text"
NONE = "none"
PREDICT = f"{V}, {V}, {V}, {V}, {V}"
FORMS = [
    *forms("load_keras_model", f"{V}, json, bytea, {T}, {T}", 2,
           "model_id is a primary key and is drawn under a lock; the JSON is checked; Lambda layers are refused"),
    *forms("delete_keras_model", f"{V}, {N}", 2, NONE),
    *forms("training_preprocessor_dl", f"{V}, {V}, {V}, {V}, {N}, real, {N}[], {T}", 4,
           "rows are shuffled over the whole table; `__dist_key__` on PostgreSQL, too; float targets stay floats;"
           " images; more arguments: `n_segments`, `seed`, `dependent_type`"),
    *forms("validation_preprocessor_dl", f"{V}, {V}, {V}, {V}, {V}, {N}, {T}", 5,
           "rows go to the segments of the training table, whatever `distribution_rules` says (NOTICE)"),
    *forms("load_model_selection_table", f"{V}, {V}, {N}[], {V}[], {V}[], {V}", 5, NONE),
    *forms("generate_model_configs", f"{V}, {V}, {N}[], {V}, {V}, {V}, {N}, {N}, {V}", 5,
           "`random_state` 0 counts; draws that are equal are drawn again; appending leaves one row in the summary"),
    *forms("madlib_keras_fit_multiple_model", f"{V}, {V}, {V}, {N}, {B}, {V}, {N}, {B}, {V}, {V}, {B}", 5,
           "runs on PostgreSQL, too; `use_caching` is accepted, memory decides; optimizer state is carried; one table"
           " more, `<output>_state`; columns at the end of the others; more arguments"),
    *forms("madlib_keras_fit", f"{V}, {V}, {V}, {N}, {V}, {V}, {N}, {B}, {V}, {N}, {B}, {V}, {V}, {V}", 7,
           "averages over segments on PostgreSQL, too; optimizer state is averaged with the weights; one table more,"
           " `<model>_state`; columns at the end of the summary; more arguments"),
    *forms("madlib_keras_evaluate", f"{V}, {V}, {V}, {B}, {N}", 3, "reads the table segment by segment"),
    *forms("madlib_keras_predict", f"{PREDICT}, {V}, {B}, {N}", 5, "computes blocks of rows, not row by row; images"),
    *forms("madlib_keras_predict", f"{PREDICT}, {N}, {B}, {N}", 6),
    *forms("madlib_keras_predict", f"{PREDICT}, double precision, {B}, {N}", 6),
    *forms("madlib_keras_predict_byom", f"{V}, {N}, {V}, {V}, {V}, {V}, {V}, {B}, {T}[], double precision, {N}", 6,
           "one more argument, `backend`"),
    *forms("madlib_keras_predict_byom", f"{V}, {N}, {V}, {V}, {V}, {V}, {N}, {B}, {T}[], double precision", 7,
           "works; in MADlib it fails"),
    *forms("madlib_keras_predict_byom",
           f"{V}, {N}, {V}, {V}, {V}, {V}, double precision, {B}, {T}[], double precision", 7,
           "works; in MADlib it fails"),
    *forms("madlib_keras_automl",
           f"{V}, {V}, {V}, {V}, {N}[], {V}, {V}, {V}, {V}, {N}, {V}, {B}, {V}, {N}, {V}, {V}, {B}", 7,
           "runs on PostgreSQL, too; keeps the weights of the best configuration only; Hyperopt's algorithms are"
           " Optuna's; columns at the end of the tables"),
    *forms("hyperband_schedule", f"{V}, {N}, {N}, {N}", 2, NONE),
    *forms("load_custom_function", f"{V}, bytea, {T}, {T}", 3, "Python's source in place of a pickle"),
    Form("delete_custom_function", (V, N), NONE),
    Form("delete_custom_function", (V, T)),
    *forms("load_top_k_accuracy_function", f"{V}, {N}", 2, NONE),
    *forms("gpu_configuration", f"{T}, {T}", 1,
           "a process of its own looks, so the session holds no GPU; one more source, `jax`"),
]  # fmt: skip
