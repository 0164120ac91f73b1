-- Long series, one sample a row, become windows: examples of equal length, one a row.

CREATE OR REPLACE FUNCTION cerebro.window_series(
    source text, output text, id text, ts text, columns text, width integer, stride integer DEFAULT NULL, label text DEFAULT NULL,
    label_rule text DEFAULT NULL, max_gap text DEFAULT NULL) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import series
return series.window_series(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.window_series IS 'Cut the series of a table, one for each id in the order of ts, into windows of width samples, one at each stride, with a label by a rule; windows across gaps and missing values are left out';
