"""Wrong calls of predictions with a model of one's own, with what each is refused with; see
`scene`.
"""

from __future__ import annotations

from wrong_calls import COLUMN, EXISTS, NULL, TABLE, WRONG, Case


def byom(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"madlib_keras_predict_byom({arguments})", sqlstate, words)


OWN = "'own_models', 1, 'points', 'id', 'x', 'o'"
BYOM = [
    byom("'own_models', 1, '', 'id', 'x', 'o'", NULL, "input table"),
    byom("'own_models', 1, 'points', NULL, 'x', 'o'", NULL, "id"),
    byom("NULL, 1, 'points', 'id', 'x', 'points'", NULL, "input table"),
    byom("'own_models', 1, NULL, 'id', 'x', 'points'", NULL, "input table"),
    byom("'own_models', 1, 'points', 'id', NULL, 'points'", NULL, "independent_varname"),
    byom("'own_models', 1, 'points', 'id', '', 'o'", NULL, "independent_varname"),
    byom("'own_models', 1, 'points', 'id', 'x', NULL", NULL, "output table"),
    byom("'own_models', NULL, 'points', 'id', 'x', 'o'", "42704", "model arch"),
    byom("'own_models', 9, 'points', 'id', 'x', 'o'", "42704", "model arch"),
    byom("'own_models', 3, 'points', 'id', 'x', 'o'", NULL, "weights"),
    byom("'points', 1, 'points', 'id', 'x', 'o'", COLUMN, "architecture"),
    byom("'own_models', 1, 'gone', 'id', 'x', 'o'", TABLE, "gone"),
    byom("'own_models', 1, 'secret', 'id', 'x', 'o'", "42501", "secret"),
    byom("'own_models', 1, 'points', 'id', 'x', 'points'", EXISTS, "points"),
    byom("'own_models', 1, 'points', 'gone', 'x', 'o'", COLUMN, "id"),
    byom("'own_models', 1, 'points', 'id', 'gone', 'o'", COLUMN, "gone"),
    byom("'own_models', 1, 'points', 'id', 'label', 'o'", "42804", "label"),
    byom("'own_models', 1, 'points', 'id', 'pair', 'o'", "42804", "shape"),
    byom("'own_models', 1, 'points', 'id', 'x, pair', 'o'", "42804", "input"),
    byom("'own_models', 1, 'holes', 'id', 'x', 'o'", NULL, "row"),
    byom(f"{OWN}, 'best'", WRONG, "pred_type"),
    byom(f"{OWN}, 0", WRONG, "pred_type"),
    byom(f"{OWN}, 1.5", WRONG, "pred_type"),
    byom(f"{OWN}, 'prob', TRUE", "55000", "GPU"),
    byom(f"{OWN}, class_values => ARRAY['a', 'b', 'c', 'd']", WRONG, "class values"),
    byom(f"{OWN}, class_values => ARRAY[['a', 'b', 'c'], ['d', 'e', 'f']]", WRONG, "class values"),
    byom(f"{OWN}, class_values => ARRAY[[['a', 'b', 'c']]]", WRONG, "dimensions"),
    byom(f"{OWN}, normalizing_const => 0", WRONG, "normalizing constant"),
    byom(f"{OWN}, normalizing_const => 'NaN'", WRONG, "normalizing constant"),
    byom(f"{OWN}, dependent_count => 2", WRONG, "dependent_count"),
    byom(f"{OWN}, backend => 'mxnet'", WRONG, "mxnet"),
    byom("'own_models', 4, 'points', 'id', 'x, pair', 'o'", WRONG, "dependent_count"),
    byom(
        "'own_models', 4, 'points', 'id', 'x, pair', 'o', dependent_count => 2, class_values => "
        "ARRAY['a', 'b', 'c']",
        WRONG,
        "class values",
    ),
]
