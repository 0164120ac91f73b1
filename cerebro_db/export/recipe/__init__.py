"""Recipes applied to raw columns: the inputs of a network, and predictions from its outputs.

This folder needs numpy only, because it runs without the database and without cerebro_db: models
that MLflow registers contain a copy of it, and users may copy it. Its modules therefore import
each other relatively. It repeats three rules of the database:

* encoding features as numbers and codes (`preprocessing/recipe/encoding.py` of the backend,
  `data/recipe_values.py` of the trainer);
* dividing and hashing texts (`preprocessing/recipe/text_hashing.py`, with a function of
  PostgreSQL);
* turning outputs into predictions (`commands/prediction_columns.py` of the trainer).

A recipe contains constants, not operations. The operations are SQL in the database, numpy here,
and a graph in ONNX, whose constants come from here. Tests compare the constants with those of the
backend to the bit, and the predictions with those of the database.
"""
