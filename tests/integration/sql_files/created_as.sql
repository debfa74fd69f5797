CREATE TABLE shop.orders (id INT, region STRING, amount INT);
INSERT INTO shop.orders VALUES (1, 'eu', 10), (2, 'eu', 20), (3, 'us', 5);
CREATE TABLE shop.regions PARTITIONED BY (region) COMMENT 'sums' AS
    WITH sums AS (SELECT region, sum(amount) AS amount FROM shop.orders GROUP BY region)
    SELECT region, amount FROM sums;
-- It is there: nothing is inserted.
CREATE TABLE IF NOT EXISTS shop.regions AS SELECT 'xx' AS region, 1L AS amount;
CREATE TABLE IF NOT EXISTS shop.large AS SELECT * FROM shop.regions WHERE amount > 10;
