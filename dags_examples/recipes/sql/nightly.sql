-- As it ran with spark-sql.
CREATE TABLE IF NOT EXISTS sales (sale_id BIGINT, product STRING, amount DECIMAL(10, 2), day DATE)
PARTITIONED BY (day);

CREATE TEMPORARY VIEW today AS
SELECT * FROM landed WHERE day = DATE '{{ run_partition('day') }}';

MERGE INTO sales AS t
USING today AS s
ON t.day = s.day AND t.sale_id = s.sale_id
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *;

CREATE TABLE IF NOT EXISTS sales_by_product (product STRING, amount DECIMAL(20, 2), day DATE)
PARTITIONED BY (day);

SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE sales_by_product
SELECT product, sum(amount), day FROM sales WHERE day = DATE '{{ run_partition('day') }}'
GROUP BY product, day;
