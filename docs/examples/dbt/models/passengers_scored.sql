-- One row for each passenger, with what the model says of it.
SELECT p.id::integer AS id, p.prediction, p.probability, now() AS scored_at
FROM cerebro.predict('{{ var("predicting_model") }}', '{{ source("raw", "passengers") }}', id_col => 'id') p
