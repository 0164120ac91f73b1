"""Wrong calls of predictions with a model of one's own, with what each is refused with; see `scene`."""

from __future__ import annotations

from wrong_calls import COLUMN, EXISTS, NULL, TABLE, WRONG, Case


def byom(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"madlib_keras_predict_byom({arguments})", sqlstate, words)


OWN = "'own_models', 1, 'points', 'id', 'x', 'o'"
NUMBER_OF_CLASSES = "madlib_keras_predict_byom: The number of class values do not match the provided architecture."
BYOM = [
    byom("NULL, 1, 'points', 'id', 'x', 'o'", NULL, "madlib_keras_predict_byom error: NULL/empty input table name!"),
    byom("'own_models', 1, '', 'id', 'x', 'o'", NULL, "NULL/empty input table name!"),
    byom("'own_models', 1, 'points', NULL, 'x', 'o'", NULL, "id column is NULL or empty"),
    byom("'own_models', 1, 'points', 'id', '', 'o'", NULL, "independent_varname is NULL or empty"),
    byom("'own_models', 1, 'points', 'id', 'x', NULL", NULL, "NULL/empty output table name!"),
    byom("'own_models', NULL, 'points', 'id', 'x', 'o'", "42704",
         "no model arch found in table own_models with id NULL"),
    byom("'own_models', 9, 'points', 'id', 'x', 'o'", "42704", "no model arch found in table own_models with id 9"),
    byom("'own_models', 2, 'points', 'id', 'x', 'o'", NULL,
         "madlib_keras_predict_byom: Model weights and architecture should not be NULL."),
    byom("'own_models', 3, 'points', 'id', 'x', 'o'", NULL, "Model weights and architecture should not be NULL."),
    byom("'own_models', 5, 'points', 'id', 'x', 'o'", "MS001",
         "Number of elements in model weights(1) doesn't match model(67)"),
    byom("'gone', 1, 'points', 'id', 'x', 'o'", TABLE, "Input table 'gone' does not exist."),
    byom("'points', 1, 'points', 'id', 'x', 'o'", COLUMN, "Invalid keras model architecture table points"),
    byom("'own_models', 1, 'gone', 'id', 'x', 'o'", TABLE, "Input table 'gone' does not exist."),
    byom("'own_models', 1, 'secret', 'id', 'x', 'o'", "42501", "permission denied for test table 'secret'"),
    byom("'own_models', 1, 'points', 'id', 'x', 'points'", EXISTS, "Output table 'points' already exists."),
    byom("'own_models', 1, 'points', 'gone', 'x', 'o'", COLUMN, "invalid id column ('gone') for test table (points)."),
    byom("'own_models', 1, 'points', 'id', 'gone', 'o'", COLUMN, "invalid independent_varname ('gone')"),
    byom("'own_models', 1, 'points', 'id', 'label', 'o'", "42804", "independent column 'label' is of type text"),
    byom("'own_models', 1, 'points', 'id', 'pair', 'o'", "42804",
         "Input shape [4] in the model architecture does not match the input shape [2] of column pair in table"
         " points."),
    byom("'own_models', 1, 'points', 'id', 'x, pair', 'o'", "42804",
         "model_id 1 has 1 input; received 2 independent columns of table points: x, pair."),
    byom("'own_models', 1, 'holes', 'id', 'x', 'o'", NULL, "the input of the row whose id is"),
    byom(f"{OWN}, 'best'", WRONG, "madlib_keras_predict_byom: Invalid value for pred_type param (best)."),
    byom(f"{OWN}, 0", WRONG, "Invalid value for pred_type param (0)."),
    byom(f"{OWN}, 1.5", WRONG, "Invalid value for pred_type param (1.5)."),
    byom(f"{OWN}, 'prob', TRUE", "55000", "No GPUs configured on hosts."),
    byom(f"{OWN}, class_values => ARRAY['a', 'b']", WRONG, NUMBER_OF_CLASSES),
    byom(f"{OWN}, class_values => ARRAY['a', 'b', 'c', 'd']", WRONG, NUMBER_OF_CLASSES),
    byom(f"{OWN}, class_values => ARRAY[['a', 'b', 'c'], ['d', 'e', 'f']]", WRONG, NUMBER_OF_CLASSES),
    byom(f"{OWN}, class_values => ARRAY[[['a', 'b', 'c']]]", WRONG, "class_values has more than two dimensions."),
    byom(f"{OWN}, normalizing_const => 0", WRONG, "The normalizing constant has to be a positive integer or NULL."),
    byom(f"{OWN}, normalizing_const => 'NaN'", WRONG, "The normalizing constant has to be"),
    byom(f"{OWN}, dependent_count => 2", WRONG,
         "dependent_count is 2, but model_id 1 has 1 output: output."),
    byom(f"{OWN}, backend => 'torch'", WRONG, "backend is 'torch'; expected one of tensorflow, jax."),
    byom("'own_models', 4, 'points', 'id', 'x, pair', 'o'", WRONG,
         "dependent_count is 1, but model_id 4 has 2 outputs: kind, size."),
    byom("'own_models', 4, 'points', 'id', 'x, pair', 'o', dependent_count => 2, class_values => ARRAY['a', 'b', 'c']",
         WRONG, NUMBER_OF_CLASSES),
]  # fmt: skip
