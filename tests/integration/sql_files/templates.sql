{# Rendered by Airflow. #}
CREATE TABLE IF NOT EXISTS shop.{{ params.table }} (id INT, day STRING);
{% for number in range(3) %}
INSERT INTO shop.{{ params.table }} VALUES ({{ number }}, '{{ ds }}');
{% endfor %}
DELETE FROM shop.{{ params.table }} WHERE day < '{{ macros.ds_add(ds, -1) }}' OR id = {{ 1 }};
INSERT INTO shop.daily VALUES (9, '{% raw %}{{ ds }}{% endraw %}');
