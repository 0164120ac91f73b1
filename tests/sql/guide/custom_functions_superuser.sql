-- Custom metrics and losses, what a superuser does: run this before custom_functions.sql.
--
-- A function is source text of Python, which the trainers run as the system user of the server: that is why superusers
-- alone register functions, and everyone who may train can read them, and use them. They stand in an object table in
-- the schema of the extension. Blocks that begin with DO check what the statements above them made.
DROP TABLE IF EXISTS madlib.guide_functions;

-- 1. A metric: the mean probability that a model gives to the right class.
SELECT madlib.load_custom_function('guide_functions', $$
import keras


def trust(y_true, y_pred):
    return keras.ops.sum(y_true * y_pred, axis=-1)
$$, 'trust', 'probability of the right class');

-- 2. A loss: cross-entropy in which examples that are right already count less.
SELECT madlib.load_custom_function('guide_functions', $$
import keras


def hard_examples(y_true, y_pred):
    right = keras.ops.clip(keras.ops.sum(y_true * y_pred, axis=-1), 1e-7, 1.0)
    return -keras.ops.square(1.0 - right) * keras.ops.log(right)
$$, 'hard_examples', 'cross-entropy for what is still wrong');

-- 3. How often the right class is among the two most probable: this metric need not be written.
SELECT madlib.load_top_k_accuracy_function('guide_functions', 2);

-- 4. A function that is not wanted any more, by its name; or by its id.
SELECT madlib.load_custom_function('guide_functions', 'def idle(y_true, y_pred): return 0.0', 'idle');
SELECT madlib.delete_custom_function('guide_functions', 'idle');
SELECT id, name, description FROM madlib.guide_functions ORDER BY id;

DO $$ BEGIN
    ASSERT (SELECT array_agg(name ORDER BY id) FROM madlib.guide_functions) = '{trust,hard_examples,top_2_accuracy}',
        'three functions';
END $$;
