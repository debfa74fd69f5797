CREATE OR REPLACE TABLE shop.latest AS SELECT 1 AS id, 'old' AS state;
CREATE OR REPLACE TABLE shop.latest AS SELECT id, 'new' AS state FROM (VALUES (2), (3)) AS v(id);
CREATE TABLE shop.gone (id INT);
DROP TABLE IF EXISTS shop.gone;
DROP TABLE IF EXISTS shop.never;
CREATE TABLE shop.gone AS SELECT 'another' AS table;
