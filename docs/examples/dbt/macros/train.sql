{#- dbt rolls an operation back, which a model outlives, and tells no message of the server: so what was tried is logged. -#}
{% macro train(source, target, options={}) %}
    {% set arguments = {'source': source, 'target': target} %}
    {% do arguments.update(options) %}
    {% set named = [] %}
    {% for name, value in arguments.items() %}
        {% do named.append(name ~ ' => ' ~ literal(value)) %}
    {% endfor %}
    {% set tried = run_query('SELECT rank, template, epochs, status, metric, validation FROM cerebro.train(' ~ named | join(', ') ~ ')') %}
    {% for row in tried.rows %}
        {% do log(row.values() | join(' | '), info=true) %}
    {% endfor %}
{% endmacro %}

{#- A number or a truth value as SQL has it, else a text, which takes whatever type the argument has: lists as '{a,b}'. -#}
{% macro literal(value) %}
    {%- if value is boolean or value is number -%} {{ value }} {%- else -%} {{ dbt.string_literal(dbt.escape_single_quotes(value)) }} {%- endif -%}
{% endmacro %}
