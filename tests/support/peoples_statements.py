"""Statements as the documentation of Spark, Paimon, Iceberg and Delta Lake shows their kinds.

They are about ``shop.orders`` (order_id BIGINT, customer STRING, amount DECIMAL(10, 2), status
STRING, day DATE), which is partitioned by day, and ``shop.updates`` with the same columns.
"""

from __future__ import annotations

# By name: what runs as it is, on tables of either format.
RUN = {
    "merge-upsert": """
        MERGE INTO shop.orders t USING shop.updates s ON t.order_id = s.order_id
        WHEN MATCHED AND s.status = 'gone' THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.amount = s.amount, t.status = s.status
        WHEN NOT MATCHED THEN INSERT *""",
    "merge-by-source": """
        MERGE INTO shop.orders t USING (SELECT * FROM shop.updates WHERE status <> 'gone') s
        ON t.order_id = s.order_id WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED BY SOURCE AND t.day < DATE '2020-01-01' THEN DELETE""",
    "merge-evolution": """
        MERGE WITH SCHEMA EVOLUTION INTO shop.orders t USING shop.updates s
        ON t.order_id = s.order_id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
    "merge-latest": """
        WITH latest AS (
            SELECT * FROM (
                SELECT *, row_number() OVER (PARTITION BY order_id ORDER BY day DESC) AS n
                FROM shop.updates) WHERE n = 1)
        MERGE INTO shop.orders t USING latest s ON t.order_id = s.order_id
        WHEN MATCHED THEN UPDATE SET amount = s.amount""",
    "insert-values": "INSERT INTO shop.orders VALUES (11, 'ann', 1.50, 'open', DATE '2026-01-01')",
    "insert-columns": "INSERT INTO shop.orders (order_id, day) SELECT 12, DATE '2026-01-02'",
    "insert-table": "INSERT INTO TABLE shop.orders TABLE shop.updates",
    "insert-by-name": "INSERT INTO shop.orders BY NAME SELECT DATE '2026-01-03' day, 13 order_id",
    "insert-partition": """
        INSERT INTO shop.orders PARTITION (day = '2026-01-04')
        SELECT order_id, customer, amount, status FROM shop.updates""",
    "overwrite-partition": """
        INSERT OVERWRITE shop.orders PARTITION (day = DATE '2026-01-04')
        SELECT order_id, customer, amount, status FROM shop.updates LIMIT 1""",
    "overwrite-dynamic": """
        SET spark.sql.sources.partitionOverwriteMode = dynamic;
        INSERT OVERWRITE shop.orders SELECT * FROM shop.updates;""",
    "overwrite-all": "INSERT OVERWRITE TABLE shop.copy SELECT * FROM shop.updates",
    "delete": "DELETE FROM shop.orders WHERE amount > 1000 AND status IS NULL",
    "delete-in": "DELETE FROM shop.orders WHERE order_id IN (SELECT order_id FROM shop.updates)",
    "delete-exists": """
        DELETE FROM shop.orders AS o
        WHERE EXISTS (SELECT 1 FROM shop.updates u WHERE u.order_id = o.order_id)""",
    "update": "UPDATE shop.orders SET status = 'x', amount = amount + 1 WHERE day < '2020-01-02'",
    "update-from-subquery": """
        UPDATE shop.orders SET amount = (SELECT max(amount) FROM shop.updates)
        WHERE order_id = 1""",
    "truncate": "TRUNCATE TABLE shop.copy",
    "truncate-partition": "TRUNCATE TABLE shop.orders PARTITION (day = DATE '2020-02-02')",
    "drop-partition": "ALTER TABLE shop.orders DROP IF EXISTS PARTITION (day = DATE '2020-02-03')",
    "create": """
        CREATE TABLE IF NOT EXISTS shop.created (id BIGINT NOT NULL COMMENT 'key', name STRING)
        COMMENT 'made by a file'""",
    "create-partitioned": """
        CREATE TABLE shop.partitioned (id BIGINT, day DATE) PARTITIONED BY (day)""",
    "create-as": "CREATE TABLE shop.copied AS SELECT order_id, amount FROM shop.orders",
    "create-as-partitioned": """
        CREATE TABLE IF NOT EXISTS shop.copied_by_day PARTITIONED BY (day)
        AS SELECT order_id, day FROM shop.orders""",
    "replace-as": "CREATE OR REPLACE TABLE shop.replaced AS SELECT 1 AS one",
    "add-column": "ALTER TABLE shop.altered ADD COLUMNS (note STRING COMMENT 'free text')",
    "rename-column": "ALTER TABLE shop.altered RENAME COLUMN name TO title",
    "widen-column": "ALTER TABLE shop.altered ALTER COLUMN small TYPE BIGINT",
    "drop-column": "ALTER TABLE shop.altered DROP COLUMN extra",
    "comment": "COMMENT ON TABLE shop.altered IS 'what it is'",
    "view": """
        -- Only for this file; with a ; in a comment.
        CREATE OR REPLACE TEMPORARY VIEW open AS SELECT * FROM shop.updates WHERE status = 'a;b';
        /* twice; /* nested; */ */
        MERGE INTO shop.orders t USING open s ON t.order_id = s.order_id WHEN MATCHED THEN DELETE;
        INSERT INTO shop.orders SELECT * FROM open;""",
    "use": "USE shop; DELETE FROM orders WHERE order_id = -1; USE `shop`; DELETE FROM copy",
    "names": "delete from `shop`.`Orders` where `ORDER_ID` = -2",
    "time-zone": """
        SET TIME ZONE 'Europe/Berlin';
        DELETE FROM shop.orders WHERE day = to_date(current_timestamp()) AND order_id = -3""",
    "template": "DELETE FROM shop.orders WHERE day = '{{ macros.ds_add(ds, -400) }}'",
    "hint": "INSERT INTO shop.orders SELECT /*+ COALESCE(1) */ * FROM shop.updates",
}
# What runs after an edit, which `check` makes.
EDITED = {
    "view-that-stays": "CREATE VIEW v AS SELECT * FROM shop.updates; INSERT INTO shop.copy TABLE v",
    "external": "CREATE EXTERNAL TABLE shop.outside (id INT) LOCATION '/data/outside'",
    "location": "CREATE TABLE shop.placed (id INT) LOCATION '/data/placed' COMMENT 'x'",
    "database": "CREATE DATABASE IF NOT EXISTS shop; TRUNCATE TABLE shop.copy",
    "setting": "SET hive.exec.dynamic.partition.mode = nonstrict; TRUNCATE TABLE shop.copy",
    "show": """
        SHOW PARTITIONS shop.orders; DESCRIBE TABLE EXTENDED shop.orders;
        TRUNCATE TABLE shop.copy""",
    "analyze": "TRUNCATE TABLE shop.copy; ANALYZE TABLE shop.orders COMPUTE STATISTICS",
    "refresh": "REFRESH TABLE shop.orders; MSCK REPAIR TABLE shop.orders; TRUNCATE TABLE shop.copy",
    "cache": "CACHE TABLE shop.orders; TRUNCATE TABLE shop.copy; UNCACHE TABLE shop.orders",
    "select-between": "SELECT count(*) FROM shop.orders; TRUNCATE TABLE shop.copy",
    "variable": "DELETE FROM shop.orders WHERE day = DATE '${ds}'",
    "replace-table": "REPLACE TABLE shop.again AS SELECT 1 AS one",
}
# One query: QueryOperator's.
QUERIES = {
    "select": "SELECT status, count(*) AS n FROM shop.orders GROUP BY status ORDER BY n DESC",
    "select-with": "WITH o AS (SELECT * FROM shop.orders) SELECT max(amount) FROM o",
}
# What nothing here does the same as.
REFUSED = {
    "time-travel": """
        INSERT INTO shop.copy
        SELECT * FROM shop.orders TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY""",
    "cache-as": "CACHE TABLE c AS SELECT 1",
    "optimize": "OPTIMIZE shop.orders ZORDER BY (customer)",
    "vacuum": "VACUUM shop.orders RETAIN 168 HOURS",
    "restore": "RESTORE TABLE shop.orders TO VERSION AS OF 1",
    "convert": "CONVERT TO DELTA parquet.`/data/events`",
    "clone": "CREATE TABLE shop.cloned SHALLOW CLONE shop.orders",
    "copy-into": "COPY INTO shop.orders FROM '/landing' FILEFORMAT = CSV",
    "delta": "CREATE TABLE shop.delta (id INT) USING delta",
    "constraint": "ALTER TABLE shop.altered ADD CONSTRAINT paid CHECK (amount > 0)",
    "generated": "CREATE TABLE shop.g (id INT, twice INT GENERATED ALWAYS AS (id * 2))",
    "replace-where": "INSERT INTO shop.orders REPLACE WHERE status = 'open' TABLE shop.updates",
    "path": "INSERT INTO shop.copy SELECT * FROM parquet.`/data/orders`",
    "multi-insert": "FROM shop.updates INSERT INTO shop.copy SELECT * INSERT INTO shop.a SELECT *",
    "load": "LOAD DATA INPATH '/data' INTO TABLE shop.orders",
    "grant": "GRANT SELECT ON TABLE shop.orders TO ann",
    "function": "CREATE FUNCTION twice AS 'com.example.Twice'",
    "describe-history": "TRUNCATE TABLE shop.copy; RESET",
    "unknown-column": "DELETE FROM shop.orders WHERE nothing = 1",
    "unknown-table": "INSERT INTO shop.nowhere SELECT 1",
}
# By format: calls of its procedures, and what only its tables have.
RUN_ON = {
    "paimon": {
        "create-as-using": "CREATE TABLE shop.used USING paimon AS SELECT 1 AS one",
        "call-expire": "CALL sys.expire_snapshots(table => 'shop.copy', retain_max => 20)",
        "call-compact": "CALL sys.compact(table => 'shop.copy')",
        "call-tag": "CALL sys.create_tag(table => 'shop.orders', tag => 'first', snapshot => 1)",
        "call-orphans": "CALL sys.remove_orphan_files(table => 'shop.orders')",
        "primary-key": """
            CREATE TABLE shop.keyed (id BIGINT, name STRING) USING paimon
            TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')""",
        "drop": "DROP TABLE IF EXISTS shop.old",
    },
    "iceberg": {
        "create-as-using": "CREATE TABLE shop.used USING iceberg AS SELECT 1 AS one",
        "call-expire": """
            CALL lake.system.expire_snapshots('shop.copy', TIMESTAMP '2020-01-01 00:00:00', 5)""",
        "call-rewrite": "CALL lake.system.rewrite_data_files(table => 'shop.copy')",
        "call-manifests": "CALL lake.system.rewrite_manifests('shop.orders')",
        "transform": """
            CREATE TABLE shop.by_month (id BIGINT, at TIMESTAMP) USING iceberg
            PARTITIONED BY (months(at), bucket(4, id))""",
        "properties": "ALTER TABLE shop.altered SET TBLPROPERTIES ('read.split.size' = '9')",
        "drop": "DROP TABLE shop.old",
        "write-order": "ALTER TABLE shop.altered WRITE DISTRIBUTED BY PARTITION",
    },
}
REFUSED_ON = {
    "paimon": {
        "transform": "CREATE TABLE shop.t (id BIGINT, at TIMESTAMP) PARTITIONED BY (months(at))",
        "other-format": "CREATE TABLE shop.t (id BIGINT) USING iceberg",
        "write-order": "ALTER TABLE shop.altered WRITE DISTRIBUTED BY PARTITION",
        "other-call": "CALL system.rewrite_manifests('shop.orders')",
        "unknown-argument": "CALL sys.compact(table => 'shop.orders', depth => 3)",
    },
    "iceberg": {
        "other-format": "CREATE TABLE shop.t (id BIGINT) USING paimon",
        "other-call": "CALL sys.compact('shop.orders')",
        "ancestors": "CALL lake.system.ancestors_of('shop.orders')",
        "unknown-argument": "CALL lake.system.rewrite_data_files(table => 'shop.copy', depth => 3)",
    },
}
