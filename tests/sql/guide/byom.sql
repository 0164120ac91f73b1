-- Predictions with a model of one's own, which was not trained here.
--
-- A model that was trained elsewhere is loaded with its weights, and predicts: madlib_keras_predict_byom needs no
-- packed table and no training. The model here is worked out by hand, so that everyone can see what it must say: of
-- the three scores that it gives to an iris the largest wins, and these are 6 - 2 * length of petal for setosa, 0 for
-- versicolor, 4 * (width of petal - 1.7) for virginica. An ordinary role that may use the extension can run this;
-- blocks that begin with DO check what the statements above them made.
DROP SCHEMA IF EXISTS guide_byom CASCADE;
CREATE SCHEMA guide_byom;
SET search_path = guide_byom;
\ir ../iris_data.sql

-- 1. Weights are the arrays of model.get_weights() one after the other: here the kernel, a row for each of the four
-- inputs with a number for each class, then the three biases. As bytes they are little-endian float32, which a Python
-- program gets by b''.join(w.astype('<f4').tobytes() for w in model.get_weights()). PostgreSQL writes a real with its
-- bytes in the opposite order, so they are turned round.
CREATE TABLE numbers AS
SELECT string_agg(substring(b FROM 4 FOR 1) || substring(b FROM 3 FOR 1) || substring(b FROM 2 FOR 1)
                  || substring(b FROM 1 FOR 1), '' ORDER BY place) AS weights
FROM unnest(ARRAY[
     0,  0,    0,
     0,  0,    0,
    -2,  0,    0,
     0,  0,    4,
     6,  0, -6.8]::real[]) WITH ORDINALITY AS w (number, place), float4send(number) AS b;

SELECT madlib.load_keras_model('own_models', $$
    {"class_name": "Sequential", "config": {"name": "by_hand", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 4]}},
        {"class_name": "Dense", "config": {"units": 3, "activation": "softmax"}}]}} $$::json,
    (SELECT weights FROM numbers), 'by hand', 'by length and width of the petal');
SELECT model_id, name, length(model_weights) AS bytes FROM own_models;

-- 2. All classes, with names for them in the order of the units of the last layer.
SELECT madlib.madlib_keras_predict_byom('own_models', 1, 'iris', 'id', 'attributes', 'iris_prob', 'prob', FALSE,
    ARRAY['setosa', 'versicolor', 'virginica']);
SELECT * FROM iris_prob WHERE id = 150 ORDER BY rank;

DO $$ BEGIN
    ASSERT (SELECT count(*) FROM iris_prob) = 150 * 3, 'three classes for each row';
    ASSERT (SELECT bool_and(total BETWEEN 0.9999 AND 1.0001)
            FROM (SELECT sum(prob) AS total FROM iris_prob GROUP BY id) t), 'probabilities sum to one';
    ASSERT (SELECT bool_and(abs(ln(a.prob / b.prob) - (6 - 2 * attributes[3])) < 1e-3)
            FROM iris JOIN iris_prob a USING (id) JOIN iris_prob b USING (id)
            WHERE a.class_value = 'setosa' AND b.class_value = 'versicolor'), 'the scores are those of the weights';
END $$;

-- 3. The most probable class alone; classes without names are numbered.
SELECT madlib.madlib_keras_predict_byom('own_models', 1, 'iris', 'id', 'attributes', 'iris_response', 'response', FALSE,
    ARRAY['setosa', 'versicolor', 'virginica']);
SELECT madlib.madlib_keras_predict_byom('own_models', 1, 'iris', 'id', 'attributes', 'iris_numbered', 'response');
SELECT r.id, r.class_value, n.class_value AS number FROM iris_response r JOIN iris_numbered n USING (id)
WHERE r.id % 50 = 0 ORDER BY r.id;

DO $$ BEGIN
    ASSERT (SELECT avg((class_value = species)::int) > 0.9 FROM iris_response JOIN iris USING (id)), 'mostly right';
    ASSERT (SELECT bool_and((ARRAY['setosa', 'versicolor', 'virginica'])[n.class_value::int + 1] = r.class_value)
            FROM iris_response r JOIN iris_numbered n USING (id)), 'numbers from 0, in the same order';
END $$;

-- 4. The first two; those above a threshold; and inputs that are divided first, for the model knows centimetres and the
-- table has millimetres.
CREATE TABLE iris_mm AS
SELECT id, ARRAY[attributes[1] * 10, attributes[2] * 10, attributes[3] * 10, attributes[4] * 10] AS attributes
FROM iris;
SELECT madlib.madlib_keras_predict_byom('own_models', 1, 'iris', 'id', 'attributes', 'iris_first_two', 2);
SELECT madlib.madlib_keras_predict_byom('own_models', 1, 'iris', 'id', 'attributes', 'iris_likely',
    0.4::double precision);
SELECT madlib.madlib_keras_predict_byom('own_models', 1, 'iris_mm', 'id', 'attributes', 'iris_mm_prob', 'prob', FALSE,
    ARRAY['setosa', 'versicolor', 'virginica'], 10);

DO $$ BEGIN
    ASSERT (SELECT count(*) FROM iris_first_two) = 150 * 2, 'two for each row';
    ASSERT (SELECT count(*) FROM iris_likely) = (SELECT count(*) FROM iris_prob WHERE prob > 0.4), 'a threshold';
    ASSERT (SELECT count(*) FROM iris_mm_prob m JOIN iris_prob p USING (id, class_value)
            WHERE abs(m.prob - p.prob) < 1e-4) = 150 * 3, 'the same in millimetres';
END $$;
