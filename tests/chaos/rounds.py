"""What a round is, drawn from a seed: a small fit, how it is asked for, and the faults that befall
it, each when.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice, product
from typing import TypeVar

from faults import FAULTS, OF_PREDICTIONS
from premises import SEGMENTS
from workbench import compile_text

OPTIMIZERS = (
    "Adam(learning_rate=0.01)",
    "SGD(learning_rate=0.05,momentum=0.9)",
    "RMSprop(learning_rate=0.01)",
)
TRAIN = "train"
"""In the place of a schedule: a model by name is trained."""
FITS = tuple(product(("rotation", "longest"), (False, True)))
FORMS = (*FITS, (TRAIN, False), (TRAIN, True))
"""Schedules, and whether a call is submitted."""
FRAMEWORKS = ("jax", "jax", "tensorflow")  # JAX starts faster
KEEPING = "EarlyStopping(monitor='loss',mode='max',patience=9,restore_best_weights=True)"
"""The state with the largest loss is kept, and none is stopped."""
ACTS = ("stop_config", "prioritize", "pause_run")
"""What a person asks of the first configuration, or of the run, which then is to go on at once."""
CLONE = "clone_config"
"""A warm clone of the first configuration, which searches have whose server is killed."""
SPACE = {
    "compile_params": {
        "loss": ["categorical_crossentropy"],
        "metrics": ["accuracy"],
        "optimizer": ["SGD"],
        "lr": [0.001, 0.1, "log"],
    },
    "fit_params": {"batch_size": [1], "epochs": [6], "callbacks": [f"[{KEEPING}]"]},
}
"""What a search draws others of."""
CRASH = "the postmaster is killed"
SIZES = (1, 2, 3, 3)
"""How many faults befall a round: those that meet tell most."""
MOST_OF_TRAIN = 2
"""Of one that trains a model by name, which tries each visit three times."""

T = TypeVar("T")


@dataclass(frozen=True)
class Misfortune:
    """A fault, and when it strikes: so long after so many visits were completed; -1: when a trainer
    was started.
    """

    fault: str
    visits: int
    seconds: float

    def __str__(self) -> str:
        when = "the start" if self.visits < 0 else f"visit {self.visits}"
        return f"{self.fault} {self.seconds:.2f} s after {when}"


@dataclass(frozen=True)
class Round:
    """A fit, and what is to befall it."""

    name: str
    framework: str
    schedule: str
    background: bool
    segments: int
    epochs: int
    workers: int
    evaluated: bool
    optimizers: Sequence[str]
    misfortunes: Sequence[Misfortune]
    search: bool = False
    drawn: int = 0
    """How many configurations the search draws beside the others."""
    acts: Sequence[tuple[int, str]] = ()
    """What a person asks, each after so many visits."""
    scored: str | None = None
    """What befalls a prediction with the model by name, if there is one."""

    @property
    def named(self) -> bool:
        """Whether a model by name is trained, and not a table of models."""
        return self.schedule == TRAIN

    @property
    def compiles(self) -> list[str]:
        """What its configurations say."""
        return [compile_text(optimizer) for optimizer in self.optimizers]

    @property
    def fit(self) -> str:
        """How its configurations go through the data; where metrics are computed, one state is kept
        as the best.
        """
        return "batch_size=1,epochs=6" + (f",callbacks=[{KEEPING}]" if self.evaluated else "")

    @property
    def search_params(self) -> str | None:
        """What its search is told."""
        if not self.search:
            return None
        drawn = (
            {"sampler": "tpe", "configs": len(self.optimizers) + self.drawn, "space": SPACE}
            if self.drawn
            else {}
        )
        return json.dumps({"eta": 2, **drawn})

    @property
    def visits(self) -> int:
        """Return the number of visits; a model's best configuration is trained twice."""
        trainings = len(self.optimizers) + self.drawn + self.named
        return self.segments * self.epochs * trainings

    def __str__(self) -> str:
        call = "submit" if self.background else "fit"
        size = (
            f"{len(self.optimizers)} configurations, {self.segments} segments, {self.epochs} epochs"
        )
        how = (
            f"{self.framework}, {self.schedule}, {call}, {self.workers} "
            f"workers{', a search' * self.search}"
        )
        how += f" that draws {self.drawn}" * bool(self.drawn)
        how += "".join(f", {act} after visit {visits}" for visits, act in self.acts)
        how += f", predicts while {self.scored}" if self.scored else ""
        return f"{self.name}: {how}, {size}: {'; '.join(str(each) for each in self.misfortunes)}"


def rounds(seed: str) -> Iterator[Round]:
    """The rounds of a seed, without end; of `SEED/NUMBER` that one alone.

    No fault comes twice before each has come once, and so with the ways to call.
    """
    whole, _, number = seed.partition("/")
    every = _rounds(whole)
    return islice(every, int(number) - 1, int(number)) if number else every


def _rounds(seed: str) -> Iterator[Round]:
    order = random.Random(seed)
    faults, forms, frameworks = (
        dealt(order, list(FAULTS)),
        dealt(order, FORMS),
        dealt(order, FRAMEWORKS),
    )
    scored = dealt(order, list(OF_PREDICTIONS))
    for number in count(1):
        name = f"{seed}/{number}"
        form, size = next(forms), order.choice(SIZES)
        if form[0] == TRAIN:
            hand = list(islice(faults, min(size, MOST_OF_TRAIN)))
            plan = drawn_train(random.Random(name), name, next(frameworks), form, hand)
            yield replace(plan, scored=next(scored))
        else:
            yield drawn(
                random.Random(name), name, next(frameworks), form, list(islice(faults, size))
            )


def dealt(order: random.Random, cards: Sequence[T]) -> Iterator[T]:
    """All of them in a drawn order, again and again."""
    while True:
        yield from order.sample(cards, len(cards))


def drawn(
    draw: random.Random, name: str, framework: str, form: tuple[str, bool], hand: Sequence[str]
) -> Round:
    """A round of that way to call, with those faults."""
    optimizers = draw.sample(OPTIMIZERS, draw.randint(1, len(OPTIMIZERS)))
    segments, epochs = draw.choice(SEGMENTS), draw.randint(2, 3)
    last = segments * epochs * len(optimizers) - 1
    moments = sorted((draw.randint(-1, last), draw.uniform(0, 0.5), fault) for fault in hand)
    plan = Round(
        name=name,
        framework=framework,
        schedule=form[0],
        background=form[1],
        segments=segments,
        epochs=epochs,
        workers=draw.randint(1, segments),
        evaluated=draw.random() < 0.5,
        optimizers=optimizers,
        misfortunes=[Misfortune(fault, visits, seconds) for visits, seconds, fault in moments],
    )
    asked = draw.sample(ACTS, draw.randint(0, len(ACTS))) if len(optimizers) > 1 else []
    acts = sorted((draw.randint(1, last), act) for act in asked)
    search = plan.evaluated and draw.random() < 0.7
    return replace(plan, search=search, acts=acts, drawn=draw.randint(0, 2) if search else 0)


def drawn_train(
    draw: random.Random, name: str, framework: str, form: tuple[str, bool], hand: Sequence[str]
) -> Round:
    """A round that trains a model by name, with those faults."""
    configs, epochs = draw.randint(1, 2), draw.randint(4, 8)
    last = (configs + 1) * epochs - 1  # the best one is trained twice
    moments = sorted((draw.randint(-1, last), draw.uniform(0, 0.5), fault) for fault in hand)
    return Round(
        name=name,
        framework=framework,
        schedule=form[0],
        background=form[1],
        segments=1,
        epochs=epochs,
        workers=1,
        evaluated=False,
        optimizers=OPTIMIZERS[:configs],
        misfortunes=[Misfortune(fault, visits, seconds) for visits, seconds, fault in moments],
    )


def crashes(seed: str) -> Iterator[Round]:
    """Searches with acts, without end, each of which loses the server at some moment; of
    `SEED/NUMBER` that one alone.

    By rotation nobody acts but to pause, so that an undisturbed run comes to the same.
    """
    whole, _, number = seed.partition("/")
    every = (crash(f"{whole}/{found}", *FITS[found % len(FITS)]) for found in count(1))
    return islice(every, int(number) - 1, int(number)) if number else every


def crash(name: str, schedule: str, background: bool) -> Round:
    """One of these: the server is lost while configurations are still in their first epoch, or some
    begin the next.
    """
    draw = random.Random(f"crash {name}")
    segments, epochs = draw.choice(SEGMENTS), draw.randint(3, 4)
    last = segments * len(OPTIMIZERS)
    asked = (
        ["pause_run"]
        if schedule == "rotation"
        else draw.sample((*ACTS, CLONE), draw.randint(1, len(ACTS) + 1))
    )
    return Round(
        name=name,
        framework="jax",
        schedule=schedule,
        background=background,
        segments=segments,
        epochs=epochs,
        workers=draw.randint(1, segments),
        evaluated=True,
        optimizers=OPTIMIZERS,
        misfortunes=[Misfortune(CRASH, draw.randint(-1, last), draw.uniform(0, 0.3))],
        search=True,
        drawn=draw.randint(0, 2),
        acts=sorted((draw.randint(1, last), act) for act in asked),
    )
