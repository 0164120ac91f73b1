"""Several networks as one: it says what they say together, whichever templates they are of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import plain_keras
import pytest
from test_trainer_templates import CASES, CLASSES, extreme_inputs, program
from trainer_peer import Peer, TrainerFailed
from trainer_programs import weights

from cerebro_plpy.configs.architecture.architecture import check_architecture
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.networks import ensemble
from cerebro_plpy.configs.templates.networks.ensemble import Member
from cerebro_plpy.configs.templates.registry import DEFAULT_TEMPLATES, TEMPLATES
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.operations.predict.model_predictor import COMPILE_PARAMS

SMALL = {"width": 8, "depth": 2}
SHORT = 5
"""The case that is no long test: of a few templates."""


def members(
    trainer: Peer, table: Table, head: Head, templates: Sequence[Template] = TEMPLATES
) -> tuple[list[Any], list[bytes]]:
    """A program of each template, and one of the first twice; and their states."""
    small = {template.name: SMALL if template.name != "linear" else {} for template in templates}
    programs = [
        program(template, head, table, **small[template.name])[0]
        for template in (*templates, templates[0])
    ]
    return programs, [trainer.initial(each, seed) for seed, each in enumerate(programs)]


def joined(
    trainer: Peer, text: str, head: Head, states: list[bytes], count: int | None = None
) -> list[np.ndarray]:
    """The weights of a program of this architecture that was made of states."""
    kind = {"kind": "onehot", "classes": head.units} if head is CLASSES else {"kind": "float"}
    compiled = parse_compile_params(COMPILE_PARAMS).to_json()
    made = {"architecture": json.loads(text), "compile": compiled, "targets": [kind]}
    trainer.begin(
        "restore", made, {"source": "joined", "seed": 0, "shares": [1] * (count or len(states))}, ()
    )
    trainer.send_state(b"".join(states))
    trainer.ask({"do": "finish"})
    return weights(trainer.state())


@pytest.mark.one_framework
@pytest.mark.long_for(case=(0, 1, 6))
@pytest.mark.parametrize("case", [0, 1, SHORT, 6])
def test_it_says_what_its_members_say_together(
    trainer: Peer, plain: ProcessPoolExecutor, case: int
) -> None:
    table, head = CASES[case]
    programs, states = members(
        trainer, table, head, DEFAULT_TEMPLATES[::3] if case == SHORT else TEMPLATES
    )
    texts, shares = (
        [json.dumps(each["architecture"]) for each in programs],
        range(1, len(programs) + 1),
    )
    listed = [Member(text, share / sum(shares)) for text, share in zip(texts, shares, strict=True)]
    text = ensemble.build_architecture(listed, head.units)
    assert check_architecture(json.loads(text)).output_units == (head.units,)
    together = joined(trainer, text, head, states)
    for expected, found in zip(
        [w for state in states for w in weights(state)], together, strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    inputs = extreme_inputs(table)
    of_all = plain.submit(plain_keras.predictions, text, together, inputs).result()
    each = [
        plain.submit(plain_keras.predictions, text, weights(state), inputs).result()
        for text, state in zip(texts, states, strict=True)
    ]
    expected = np.average(np.stack(each).astype(float), axis=0, weights=shares)
    # Predictions near 0 are made of larger ones.
    assert (
        np.abs(of_all - expected) <= 1e-5 * np.abs(expected) + 1e-6 * np.abs(expected).max(axis=0)
    ).all()


@pytest.mark.long
@pytest.mark.one_framework
def test_states_that_are_not_its_members_are_refused(trainer: Peer) -> None:
    table, head = CASES[0]
    programs, states = members(trainer, table, head)
    text = ensemble.build_architecture(
        [Member(json.dumps(each["architecture"]), 0.5) for each in programs[:2]], head.units
    )
    for wrong, count, words in (
        (states[:1], None, "weights together"),
        (states[:3], None, "weights"),
        (states[:3], 2, "follow its last tensor"),
        (states[:1], 2, "ends too early"),
        (states[1::-1], None, "do not fit"),
    ):
        with pytest.raises(TrainerFailed, match=words):
            joined(trainer, text, head, wrong, count)
