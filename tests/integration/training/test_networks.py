"""Backbones of keras_hub end to end: loaded, trained from segment to segment, taken up again, and
predicted with.
"""

from __future__ import annotations

import json

import networks
import psycopg2
import pytest
from processes import eventually
from workbench import Workbench, compile_text

TEXTS = """
CREATE TABLE texts AS SELECT id, ARRAY[1 + id % 3, 1 + id % 7, 10 + id % 5, 5, 0,
    0]::integer[] AS tokens,
    (ARRAY['a', 'b', 'c'])[1 + id % 3] AS kind FROM generate_series(1, 48) id"""
PICTURES = """
CREATE TABLE pictures AS SELECT id, array_fill((id % 3 / 3.0)::real, ARRAY[8, 8, 3]) AS pixels,
    (ARRAY['a', 'b', 'c'])[1 + id % 3] AS kind FROM generate_series(1, 48) id"""
ADAM = compile_text("Adam(learning_rate=0.02)")
FIT_WORKERS = 1
FIXED = {"seed": 5, "schedule": "rotation"}


@pytest.fixture(scope="module")
def texts(bench: Workbench) -> Workbench:
    """Texts in two segments, and a configuration of a BERT, which is model 2."""
    bench.rows(TEXTS)
    bench.pack("texts_packed", 2, source="texts", target="kind", inputs="tokens")
    bert = networks.texts(networks.bert(), networks.ALL, pooled=True)
    bench.configure("berts", [ADAM], model=bench.model(json.dumps(bert)))
    return bench


def test_an_epoch_and_another_are_two(texts: Workbench) -> None:
    """States are stored, and are taken up by a later call: with dropout, whose generators belong to
    them.
    """
    texts.fit("texts_packed", "read", "berts", 2, **FIXED)
    visits = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
    assert texts.value(visits, texts.newest_run()) == 2 * 2
    for warm in (False, True):
        texts.fit("texts_packed", "steps", "berts", 1, warm_start=warm, **FIXED)
    assert texts.weights("steps") == texts.weights("read")


@pytest.mark.long
def test_a_run_that_was_cancelled_goes_on(texts: Workbench) -> None:
    texts.configure("slow", [ADAM], ["batch_size=1,epochs=4"], 2)
    caller, before = texts.another(), texts.last_run_id()
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
    with caller.fitting("texts_packed", "disturbed", "slow", 6, workers=1, **FIXED) as fitted:
        eventually(lambda: texts.value(done, before) >= 1)
        texts.rows("SELECT pg_cancel_backend(%s)", caller.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    caller.close()
    run = texts.newest_run()
    texts.rows("SELECT cerebro.resume(%s)", run)
    texts.fit("texts_packed", "undisturbed", "slow", 6, schedule="replay", replay_run=run)
    assert texts.weights("disturbed") == texts.weights("undisturbed")


def test_texts_are_predicted(texts: Workbench) -> None:
    texts.configure("one", [ADAM], ["batch_size=8,epochs=5"], 2)
    texts.fit("texts_packed", "reader", "one", 4, **FIXED)
    texts.rows(
        "SELECT madlib_predict('reader', 'texts', 'id', 'tokens', 'readings', 'response', mst_key "
        "=> 1)"
    )
    assert texts.value("SELECT bool_and(class_value = kind) FROM readings JOIN texts USING (id)")


@pytest.mark.long
def test_pictures_are_trained_on_and_predicted(bench: Workbench) -> None:
    bench.rows(PICTURES)
    bench.pack("pictures_packed", 2, source="pictures", target="kind", inputs="pixels")
    model = bench.model(json.dumps(networks.vit()))
    bench.configure("vits", [ADAM], ["batch_size=8,epochs=5"], model)
    bench.fit("pictures_packed", "seer", "vits", 4, **FIXED)
    bench.rows(
        "SELECT madlib_predict('seer', 'pictures', 'id', 'pixels', 'sights', 'response', mst_key "
        "=> 1)"
    )
    assert bench.value("SELECT bool_and(class_value = kind) FROM sights JOIN pictures USING (id)")
