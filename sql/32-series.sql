-- Long series, one sample a row, become windows: examples of equal length, one a row.

CREATE OR REPLACE FUNCTION cerebro.window_series(
    -- The table or view, with a sample in each row.
    source text,
    -- The table of windows to create.
    output text,
    -- The column that says to which series a sample belongs.
    id text,
    -- The column with the time of a sample: numbers, dates, timestamps or intervals. It orders a
    -- series.
    ts text,
    -- The columns of values, which are numbers.
    columns text,
    -- Number of samples in a window.
    width integer,
    -- Samples from the start of a window to the start of the next. NULL: `width`, so that windows
    -- do not overlap.
    stride integer DEFAULT NULL,
    -- The column with the label of a sample. NULL: windows have no label.
    label text DEFAULT NULL,
    -- Label of a window. `'all'` (the default): that of all samples; windows with several labels
    -- are left out. `'last'`: that of the last sample. `'majority'`: the most frequent one; of
    -- several, the least.
    label_rule text DEFAULT NULL,
    -- The longest step of time between two samples: a number, or for dates, timestamps and
    -- intervals an interval such as `'1 second'`. A longer one is a gap. NULL: 1.5 times the median
    -- step, which an INFO reports.
    max_gap text DEFAULT NULL
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import series
return series.window_series(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro.window_series IS 'Cut the series of a table, one for each id in the order of ts, into windows of width samples, one at each stride, with a label by a rule; windows across gaps and missing values are left out';
