"""A recipe applied to raw columns: what a network takes of rows, and what its outputs say, by the
exported JSON.

This folder stands alone, with numpy, because it runs where there is neither the database nor
cerebro_db: it is put into models that MLflow registers, and may be copied; so its modules import
each other relatively. It repeats three rules of the database: how features become numbers and codes
(`preprocessing/recipe/encoding.py` of the backend, `data/recipe_values.py` of the trainer), how
texts are divided and hashed (`preprocessing/recipe/text_hashing.py`, by a function of PostgreSQL),
and what is told of outputs (`commands/prediction_columns.py` of the trainer). A recipe says
constants, not operations: these are SQL in the database, numpy here, and a graph in ONNX, whose
constants come from here. Tests compare them with those of the backend to the bit, and predictions
with those of the database.
"""
