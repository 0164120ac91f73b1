"""Calls of AutoML over the points of a workbench."""

from __future__ import annotations

from workbench import Workbench

FITS = "{'batch_size': [8], 'epochs': [1]}"
OUTPUTS = ("", "_info", "_summary")


def compiles(*families: str) -> str:
    """A compile grid of these families of optimizers."""
    return (
        "{'loss': ['categorical_crossentropy'], 'metrics': ['accuracy'], 'optimizer_params_list': ["
        + ", ".join(families)
        + "]}"
    )


def family(optimizer: str, rates: str) -> str:
    """A family of an optimizer with these learning rates: a list as text."""
    return f"{{'optimizer': ['{optimizer}'], 'lr': {rates}}}"


BOTH = compiles(family("SGD", "[0.001, 0.1, 'log']"), family("Adam", "[0.001, 0.1, 'log']"))
FROZEN = compiles(family("SGD", "[1e-31, 1e-30, 'log']"))  # a step of this size changes no float32


def search(
    bench: Workbench,
    output: str,
    grid: str = BOTH,
    fits: str = FITS,
    source: str = "packed",
    **named: object,
) -> str:
    """Search; the name of the output. The model selection table has the same name and `_mst`."""
    text = "".join(f", {name} => %s" for name in named)
    bench.rows(
        f"SELECT madlib_automl(%s, %s, 'models', %s, ARRAY[1], %s, %s{text})",
        source,
        output,
        f"{output}_mst",
        grid,
        fits,
        *named.values(),
    )
    return output


def run_of(bench: Workbench, output: str) -> int:
    """The run of a search."""
    return int(bench.value(f"SELECT run_id FROM {output}_summary"))


def states(bench: Workbench) -> set[str]:
    """All tables that hold states of runs."""
    return {
        name
        for (name,) in bench.rows(
            "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = "
            "'cerebro_state'::regnamespace AND relname NOT LIKE 'model\\_%'"
        )
    }
