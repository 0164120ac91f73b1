"""Names of Keras, as data: the backend must refuse unknown ones and never imports Keras.

A unit test compares these tables with the installed Keras.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Optimizer(NamedTuple):
    """An optimizer class: its default learning rate and the constructor arguments of its own."""

    learning_rate: float
    arguments: frozenset[str]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _read_spellings(text: str) -> Mapping[str, tuple[str, ...]]:
    """Read a line for each canonical name, which its other spellings follow."""
    lines = [line.split() for line in text.strip().splitlines()]
    return {canonical: tuple(spellings) for canonical, *spellings in lines}


def _optimizer(learning_rate: float, arguments: str = "") -> Optimizer:
    return Optimizer(learning_rate, _words(arguments))


# Arguments of the constructors of all optimizers.
COMMON_ARGUMENTS = _words(
    "learning_rate weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum "
    "ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name"
)

OPTIMIZERS: Mapping[str, Optimizer] = {
    "Adadelta": _optimizer(0.001, "rho epsilon"),
    "Adafactor": _optimizer(0.001, "beta_2_decay epsilon_1 epsilon_2 clip_threshold relative_step"),
    "Adagrad": _optimizer(0.001, "initial_accumulator_value epsilon"),
    "Adam": _optimizer(0.001, "beta_1 beta_2 epsilon amsgrad"),
    "AdamW": _optimizer(0.001, "beta_1 beta_2 epsilon amsgrad"),
    "Adamax": _optimizer(0.001, "beta_1 beta_2 epsilon"),
    "Ftrl": _optimizer(
        0.001,
        "learning_rate_power initial_accumulator_value l1_regularization_strength "
        "l2_regularization_strength l2_shrinkage_regularization_strength beta",
    ),
    "Lamb": _optimizer(0.001, "beta_1 beta_2 epsilon"),
    "Lion": _optimizer(0.001, "beta_1 beta_2"),
    "Muon": _optimizer(
        0.001,
        "adam_beta_1 adam_beta_2 adam_weight_decay epsilon exclude_layers exclude_embeddings "
        "muon_a muon_b muon_c adam_lr_ratio momentum ns_steps nesterov rms_rate",
    ),
    "Nadam": _optimizer(0.001, "beta_1 beta_2 epsilon"),
    "RMSprop": _optimizer(0.001, "rho momentum epsilon centered"),
    "SGD": _optimizer(0.01, "momentum nesterov"),
    "ScheduleFreeAdamW": _optimizer(0.0025, "beta_1 beta_2 epsilon warmup_steps"),
}

# Optimizer arguments by the kind of value they take; all others take a number.
BOOLEAN_ARGUMENTS = _words("nesterov amsgrad centered use_ema relative_step exclude_embeddings")
WHOLE_ARGUMENTS = _words(
    "ema_overwrite_frequency gradient_accumulation_steps ns_steps warmup_steps"
)
TEXT_ARGUMENTS = _words("name")
LIST_ARGUMENTS = _words("exclude_layers")

# Keras 2 arguments without a meaning in Keras 3.
DROPPED_ARGUMENTS = _words("schedule_decay jit_compile")

# Learning rate schedules and their constructor arguments.
SCHEDULES: Mapping[str, frozenset[str]] = {
    "CosineDecay": _words(
        "initial_learning_rate decay_steps alpha name warmup_target warmup_steps"
    ),
    "CosineDecayRestarts": _words("initial_learning_rate first_decay_steps t_mul m_mul alpha name"),
    "ExponentialDecay": _words("initial_learning_rate decay_steps decay_rate staircase name"),
    "InverseTimeDecay": _words("initial_learning_rate decay_steps decay_rate staircase name"),
    "PiecewiseConstantDecay": _words("boundaries values name"),
    "PolynomialDecay": _words(
        "initial_learning_rate decay_steps end_learning_rate power cycle name"
    ),
}

# A schedule beside those of Keras: the learning rate has fallen at the end of each of its cycles.
CYCLES = "CosineCycles"
OWN_SCHEDULES: Mapping[str, frozenset[str]] = {
    CYCLES: _words("warmup_target decay_steps first_decay_steps t_mul cycles name"),
}

# Canonical names, each with the other spellings of Keras 2 and 3. Any case is accepted.
LOSSES = _read_spellings("""
    binary_crossentropy BinaryCrossentropy bce
    binary_focal_crossentropy BinaryFocalCrossentropy
    categorical_crossentropy CategoricalCrossentropy
    categorical_focal_crossentropy CategoricalFocalCrossentropy
    categorical_hinge CategoricalHinge
    cosine_similarity CosineSimilarity cosine_proximity cosine
    ctc
    dice
    hinge
    huber huber_loss
    kl_divergence KLDivergence kld kullback_leibler_divergence
    log_cosh LogCosh
    mean_absolute_error MeanAbsoluteError mae
    mean_absolute_percentage_error MeanAbsolutePercentageError mape
    mean_squared_error MeanSquaredError mse
    mean_squared_logarithmic_error MeanSquaredLogarithmicError msle
    poisson
    sparse_categorical_crossentropy SparseCategoricalCrossentropy
    squared_hinge SquaredHinge
    tversky
""")

METRICS = _read_spellings("""
    accuracy acc
    auc
    binary_accuracy BinaryAccuracy
    binary_crossentropy BinaryCrossentropy bce
    categorical_accuracy CategoricalAccuracy
    categorical_crossentropy CategoricalCrossentropy
    categorical_hinge CategoricalHinge
    concordance_correlation ConcordanceCorrelation
    cosine_similarity CosineSimilarity cosine_proximity cosine
    crossentropy ce
    f1_score F1Score
    f_beta_score FBetaScore
    false_negatives FalseNegatives
    false_positives FalsePositives
    hinge
    kl_divergence KLDivergence kld kullback_leibler_divergence
    log_cosh_error LogCoshError logcosh log_cosh
    mean_absolute_error MeanAbsoluteError mae
    mean_absolute_percentage_error MeanAbsolutePercentageError mape
    mean_squared_error MeanSquaredError mse
    mean_squared_logarithmic_error MeanSquaredLogarithmicError msle
    pearson_correlation PearsonCorrelation
    poisson
    precision
    r2_score R2Score
    recall
    root_mean_squared_error RootMeanSquaredError
    sparse_categorical_accuracy SparseCategoricalAccuracy
    sparse_categorical_crossentropy SparseCategoricalCrossentropy
    sparse_top_k_categorical_accuracy SparseTopKCategoricalAccuracy
    squared_hinge SquaredHinge
    top_k_categorical_accuracy TopKCategoricalAccuracy
    true_negatives TrueNegatives
    true_positives TruePositives
""")


def _spellings(table: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {
        name.lower(): canonical
        for canonical, aliases in table.items()
        for name in (canonical, *aliases)
    }


_OPTIMIZERS = {name.lower(): name for name in OPTIMIZERS}
_LOSSES = _spellings(LOSSES)
_METRICS = _spellings(METRICS)


def find_optimizer(name: str) -> str | None:
    """Return the class name of an optimizer in any case; None if it is unknown.

    >>> find_optimizer("adamw")
    'AdamW'
    """
    return _OPTIMIZERS.get(name.lower())


def find_loss(name: str) -> str | None:
    """Return the Keras 3 name of a loss; None if it is unknown."""
    return _LOSSES.get(name.lower())


def find_metric(name: str) -> str | None:
    """Return the Keras 3 name of a metric without required arguments; None if it is unknown."""
    return _METRICS.get(name.lower())


def near_matches(name: str, choices: Iterable[str]) -> str:
    """Return a hint with the similar choices, or with all choices."""
    names = sorted(choices)
    return guess_match(name, names) or f"Known are: {', '.join(names)}."


def guess_match(name: str, choices: Iterable[str]) -> str | None:
    """Return a hint with the similar choices, for a message that lists all of them.

    >>> guess_match("acuracy", ["accuracy", "brier"]), guess_match("f2", ["accuracy", "auc"])
    ('Did you mean accuracy?', None)
    """
    import difflib  # of no use to a call that goes well

    by_lower_case = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(name.lower(), by_lower_case, n=3)
    if not close:
        return None
    return "Did you mean " + " or ".join(by_lower_case[match] for match in close) + "?"


# Layers that do not change the last dimension of their input.
KEEPS_WIDTH = _words("""
    Activation ActivityRegularization AlphaDropout BatchNormalization Dropout ELU GaussianDropout
    GaussianNoise Identity LayerNormalization LeakyReLU Masking PReLU ReLU Rescaling
    RMSNormalization Softmax UnitNormalization""")


def larger_is_better(metric: str) -> bool:
    """Return True if larger values of a metric are better.

    >>> larger_is_better("accuracy"), larger_is_better("loss")
    (True, False)
    >>> larger_is_better("mean_squared_error")
    False
    """
    if metric == "cosine_similarity":
        return True
    if metric in LOSSES or metric.startswith("false_"):
        return False
    return "loss" not in metric and "error" not in metric
