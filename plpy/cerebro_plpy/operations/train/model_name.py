"""The name of the model that a call of `cerebro.train` trains, and what follows from it."""

from __future__ import annotations

import hashlib

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.lock_holders import reserve_model
from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import DuplicateObject, quote_text
from cerebro_plpy.operations.train_arguments import TrainArguments

SEED_BYTES = 4
SEED_LIMIT = 1 << 31


def choose(arguments: TrainArguments, source: Relation, target: str) -> str:
    """Return the name in a call, or the default."""
    return arguments.model or f"{source.name}_{target}"


def reserve(
    catalog: Catalog, control: Reader, arguments: TrainArguments, source: Relation, target: str
) -> None:
    """Reserve the name of a model, as of the source, until the transaction ends.

    Raises:
        DuplicateObject: the name is the default, and another session trains it on another table.
    """
    model = choose(arguments, source, target)
    is_free = reserve_model(catalog.db, control, model, source.quoted)
    if is_free or arguments.model:
        return
    raise DuplicateObject(
        f"{catalog.module} error: model is left out, and the default is {model!r}, which another "
        f"session trains on another table now; the source is {source.quoted}.",
        hint=_suggest_names(model, source),
    )


def check_default(catalog: Catalog, reader: Reader, model: str, source: Relation) -> None:
    """Check that the default name of a model does not mix the versions of two tables.

    The default has no schema. A table of the same name in another schema would get a version of
    the first table's model, and might replace the version that predicts.

    Raises:
        DuplicateObject: the model's versions are of other tables.
    """
    sources = [str(name) for (name,) in reader.run(sql("version.sources"), (model,))]
    if not sources or source.quoted in sources:
        return
    raise DuplicateObject(
        f"{catalog.module} error: model is left out, and the default is {model!r}, whose versions "
        f"are of {', '.join(sources)}; the source is {source.quoted}.",
        hint=_suggest_names(model, source),
    )


def _suggest_names(model: str, source: Relation) -> str:
    """Return a hint with names for a model whose default name is that of another table."""
    own_name = quote_text(f"{source.schema}_{model}")
    return (
        f"For a new model write model => {own_name}. For another version of {model!r} write "
        f"model => {quote_text(model)}."
    )


def choose_split_seed(model: str, seed: int | None) -> int:
    """Return the seed of the split of a model's rows: that of the call, or one of the name.

    First calls at the same time thus divide the rows alike, and their versions are compared on
    rows that none of them was trained on.

    >>> choose_split_seed("churn", None), choose_split_seed("churn", 7)
    (145884974, 7)
    """
    if seed is not None:
        return seed
    digest = hashlib.sha256(model.encode()).digest()
    return int.from_bytes(digest[:SEED_BYTES], "big") % SEED_LIMIT
