-- Which GPUs the hosts have.

CREATE OR REPLACE FUNCTION gpu_configuration(
    -- The table to create.
    output_table text,
    -- `'tensorflow'`, `'jax'` or `'torch'`: the GPUs that the framework in `trainer_python` finds
    -- among those of the setting `gpus`. `'nvidia'`: all GPUs that `nvidia-smi` lists. Capitals do
    -- not matter.
    source text DEFAULT 'tensorflow'
) RETURNS void
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import gpu
return gpu.write(plpy, GD, *args)
$$;
COMMENT ON FUNCTION gpu_configuration IS 'Make a table with host and description of each GPU that the trainers'' framework finds, or that NVIDIA''s driver lists (source nvidia)';

CREATE OR REPLACE FUNCTION cerebro_internal.gpu_report(source text) RETURNS json
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE AS $$
from cerebro_plpy.api import gpu
return gpu.report(plpy, GD, *args)
$$;
COMMENT ON FUNCTION cerebro_internal.gpu_report IS 'Internal: descriptions of the GPUs of the host where it is called';
