-- What roles write into the log is bounded, for others compute with it: a moment that is infinite, seconds or bytes beyond all measure
-- would end the views of everybody who may see the row. These are checks of what is written, and no constraints of tables: rows
-- that an older version has let in must not end an update, or the restoring of a dump. A policy for new rows has the columns that
-- roles set once; the other has those that they may update, in new rows too. Texts are bounded so that each of them fits into a
-- value that is made of it. Seconds are sums and differences of doubles, which may come out a little below 0.

DROP POLICY IF EXISTS plausible_new ON cerebro.run_log;
CREATE POLICY plausible_new ON cerebro.run_log AS RESTRICTIVE FOR INSERT WITH CHECK (
    coalesce(octet_length(name) <= 100000, true) AND octet_length(spec::text) <= 100000000
    AND started_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00' AND cardinality(segments) <= 100000);
DROP POLICY IF EXISTS plausible ON cerebro.run_log;
CREATE POLICY plausible ON cerebro.run_log AS RESTRICTIVE FOR ALL USING (true) WITH CHECK (
    coalesce(ended_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00', true)
    AND coalesce(deadline BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00', true)
    AND coalesce(octet_length(phase) <= 100000, true)
    AND coalesce(octet_length(error) <= 10000000, true) AND coalesce(octet_length(hint) <= 10000000, true) AND epochs BETWEEN 0 AND 999999 AND octet_length(software::text) <= 1000000
    AND coalesce(trainer_seconds BETWEEN -1 AND 1e9, true) AND coalesce(backend_seconds BETWEEN -1 AND 1e9, true)
    AND coalesce(gpu_seconds BETWEEN -1 AND 1e9, true) AND coalesce(read_bytes BETWEEN 0 AND 1000000000000000, true)
    AND coalesce(peak_memory_bytes BETWEEN 0 AND 1000000000000000, true) AND coalesce(octet_length(plan::text) <= 100000000, true));

DROP POLICY IF EXISTS plausible_new ON cerebro.config_log;
CREATE POLICY plausible_new ON cerebro.config_log AS RESTRICTIVE FOR INSERT WITH CHECK (
    octet_length(params::text) <= 1000000 AND coalesce(octet_length(template) <= 100000, true)
    AND coalesce(octet_length(group_value) <= 100000, true) AND octet_length(compile_params) <= 10000000
    AND octet_length(fit_params) <= 10000000 AND octet_length(architecture::text) <= 100000000
    AND coalesce(cardinality(segments) <= 100000, true));
DROP POLICY IF EXISTS plausible ON cerebro.config_log;
CREATE POLICY plausible ON cerebro.config_log AS RESTRICTIVE FOR ALL USING (true) WITH CHECK (
    coalesce(octet_length(reason) <= 10000000, true) AND cardinality(state_tables) <= 100000
    AND octet_length(state_tables::text) <= 10000000 AND coalesce(octet_length(backend) <= 100000, true)
    AND coalesce(octet_length(cut) <= 100000, true) AND coalesce(best_epoch BETWEEN 0 AND 999999, true)
    AND coalesce(octet_length(point::text) <= 1000000, true));

DROP POLICY IF EXISTS plausible_new ON cerebro.visit;
CREATE POLICY plausible_new ON cerebro.visit AS RESTRICTIVE FOR INSERT WITH CHECK (
    epoch BETWEEN 0 AND 999999 AND started_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00');
DROP POLICY IF EXISTS plausible ON cerebro.visit;
CREATE POLICY plausible ON cerebro.visit AS RESTRICTIVE FOR ALL USING (true) WITH CHECK (
    coalesce(ended_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00', true)
    AND coalesce(stored_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00', true)
    AND coalesce(dropped_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00', true)
    AND coalesce(rows BETWEEN 0 AND 1000000000000000, true) AND coalesce(state_bytes BETWEEN 0 AND 1000000000000000, true)
    AND coalesce(read_bytes BETWEEN 0 AND 1000000000000000, true) AND coalesce(peak_memory_bytes BETWEEN 0 AND 1000000000000000, true)
    AND coalesce(octet_length(form) <= 100000, true) AND coalesce(octet_length(state_table) <= 100000, true)
    AND coalesce(octet_length(base_table) <= 100000, true) AND coalesce(octet_length(error) <= 10000000, true)
    AND coalesce(training_seconds BETWEEN -1 AND 1e9, true) AND coalesce(trainer_seconds BETWEEN -1 AND 1e9, true)
    AND coalesce(backend_seconds BETWEEN -1 AND 1e9, true) AND coalesce(gpu_seconds BETWEEN -1 AND 1e9, true));

DROP POLICY IF EXISTS plausible_new ON cerebro.evaluation;
CREATE POLICY plausible_new ON cerebro.evaluation AS RESTRICTIVE FOR INSERT WITH CHECK (
    epoch BETWEEN 0 AND 999999 AND started_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00');
DROP POLICY IF EXISTS plausible ON cerebro.evaluation;
CREATE POLICY plausible ON cerebro.evaluation AS RESTRICTIVE FOR ALL USING (true) WITH CHECK (
    coalesce(ended_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00', true)
    AND coalesce(rows BETWEEN 0 AND 1000000000000000, true) AND coalesce(read_bytes BETWEEN 0 AND 1000000000000000, true)
    AND coalesce(peak_memory_bytes BETWEEN 0 AND 1000000000000000, true) AND coalesce(octet_length(error) <= 10000000, true)
    AND coalesce(trainer_seconds BETWEEN -1 AND 1e9, true) AND coalesce(backend_seconds BETWEEN -1 AND 1e9, true)
    AND coalesce(gpu_seconds BETWEEN -1 AND 1e9, true));

DROP POLICY IF EXISTS plausible_new ON cerebro.metric;
CREATE POLICY plausible_new ON cerebro.metric AS RESTRICTIVE FOR INSERT WITH CHECK (
    epoch BETWEEN 0 AND 999999 AND octet_length(name) <= 100000
    AND time BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00');

DROP POLICY IF EXISTS plausible_new ON cerebro.decision_log;
CREATE POLICY plausible_new ON cerebro.decision_log AS RESTRICTIVE FOR INSERT WITH CHECK (
    time BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00' AND epoch BETWEEN 0 AND 999999
    AND last_epoch BETWEEN 0 AND 999999 AND octet_length(rule) <= 100000 AND octet_length(reason) <= 10000000);

DROP POLICY IF EXISTS plausible_new ON cerebro.act_log;
CREATE POLICY plausible_new ON cerebro.act_log AS RESTRICTIVE FOR INSERT WITH CHECK (
    octet_length(change::text) <= 1000000);
DROP POLICY IF EXISTS plausible ON cerebro.act_log;
CREATE POLICY plausible ON cerebro.act_log AS RESTRICTIVE FOR ALL USING (true) WITH CHECK (
    coalesce(octet_length(reason) <= 10000000, true)
    AND coalesce(done_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00', true));

DROP POLICY IF EXISTS plausible_new ON cerebro.form_timing;
CREATE POLICY plausible_new ON cerebro.form_timing AS RESTRICTIVE FOR INSERT WITH CHECK (
    octet_length(machine) <= 100000 AND octet_length(program) <= 100000 AND octet_length(form) <= 100000);
DROP POLICY IF EXISTS plausible ON cerebro.form_timing;
CREATE POLICY plausible ON cerebro.form_timing AS RESTRICTIVE FOR ALL USING (true) WITH CHECK (
    coalesce(seconds_per_row BETWEEN -1 AND 1e9, true) AND compile_seconds BETWEEN -1 AND 1e9
    AND measured_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00');

DROP POLICY IF EXISTS plausible_new ON cerebro.model_log;
CREATE POLICY plausible_new ON cerebro.model_log AS RESTRICTIVE FOR INSERT WITH CHECK (
    octet_length(model) <= 100000 AND octet_length(split) <= 100000 AND coalesce(octet_length(bound) <= 100000, true));
DROP POLICY IF EXISTS plausible ON cerebro.model_log;
CREATE POLICY plausible ON cerebro.model_log AS RESTRICTIVE FOR ALL USING (true) WITH CHECK (
    coalesce(deployed_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00', true));

DROP POLICY IF EXISTS plausible_new ON cerebro.version_log;
CREATE POLICY plausible_new ON cerebro.version_log AS RESTRICTIVE FOR INSERT WITH CHECK (
    octet_length(model) <= 100000 AND octet_length(source) <= 100000 AND octet_length(target) <= 100000
    AND octet_length(target_type) <= 100000 AND octet_length(template) <= 100000 AND octet_length(metric) <= 100000
    AND octet_length(backend) <= 100000 AND coalesce(octet_length(fingerprint) <= 100000, true)
    AND coalesce(octet_length(group_by) <= 100000, true)
    AND created_at BETWEEN timestamptz '1970-01-01 00:00+00' AND timestamptz '2200-01-01 00:00+00' AND octet_length(params::text) <= 1000000
    AND octet_length(software::text) <= 1000000 AND octet_length(recipe::text) <= 100000000
    AND coalesce(octet_length(architecture::text) <= 100000000, true) AND coalesce(octet_length(profile::text) <= 100000000, true)
    AND coalesce(training_rows BETWEEN 0 AND 1000000000000000, true) AND coalesce(validation_rows BETWEEN 0 AND 1000000000000000, true)
    AND state_bytes BETWEEN 0 AND 1000000000000000 AND cardinality(classes) <= 100000 AND octet_length(classes::text) <= 10000000
    AND coalesce(octet_length(compile_params) <= 10000000, true));
DROP POLICY IF EXISTS plausible ON cerebro.version_log;
CREATE POLICY plausible ON cerebro.version_log AS RESTRICTIVE FOR ALL USING (true) WITH CHECK (
    coalesce(cardinality(importance) <= 100000, true) AND coalesce(cardinality(importance_error) <= 100000, true));

DROP POLICY IF EXISTS plausible_new ON cerebro.group_log;
CREATE POLICY plausible_new ON cerebro.group_log AS RESTRICTIVE FOR INSERT WITH CHECK (
    octet_length(model) <= 100000 AND octet_length(group_value) <= 100000 AND octet_length(template) <= 100000
    AND octet_length(backend) <= 100000 AND octet_length(params::text) <= 1000000 AND training_rows BETWEEN 0 AND 1000000000000000
    AND state_bytes BETWEEN 0 AND 1000000000000000 AND coalesce(octet_length(architecture::text) <= 100000000, true)
    AND coalesce(octet_length(compile_params) <= 10000000, true));

DROP POLICY IF EXISTS plausible_new ON cerebro.member_log;
CREATE POLICY plausible_new ON cerebro.member_log AS RESTRICTIVE FOR INSERT WITH CHECK (
    octet_length(model) <= 100000 AND octet_length(group_value) <= 100000 AND octet_length(template) <= 100000
    AND octet_length(backend) <= 100000 AND octet_length(params::text) <= 1000000
    AND state_bytes BETWEEN 0 AND 1000000000000000 AND octet_length(architecture::text) <= 100000000
    AND octet_length(compile_params) <= 10000000);

DROP POLICY IF EXISTS plausible_new ON cerebro.grant_log;
CREATE POLICY plausible_new ON cerebro.grant_log AS RESTRICTIVE FOR INSERT WITH CHECK (
    octet_length(model) <= 100000);
DROP POLICY IF EXISTS plausible ON cerebro.grant_log;
CREATE POLICY plausible ON cerebro.grant_log AS RESTRICTIVE FOR ALL USING (true) WITH CHECK (
    coalesce(octet_length(gate) <= 100000, true) AND coalesce(octet_length(outline::text) <= 100000000, true));

DROP POLICY IF EXISTS plausible_new ON cerebro.grant_state;
CREATE POLICY plausible_new ON cerebro.grant_state AS RESTRICTIVE FOR INSERT WITH CHECK (
    octet_length(model) <= 100000 AND octet_length(chunk) <= 10000000);
