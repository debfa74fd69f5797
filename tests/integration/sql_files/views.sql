CREATE TABLE shop.orders (id INT, customer STRING, amount INT);
CREATE TABLE shop.totals (customer STRING, amount BIGINT);
INSERT INTO shop.orders VALUES (1, 'x', 10), (2, 'y', 20), (3, 'x', 30);
CREATE OR REPLACE TEMPORARY VIEW orders (id, who, amount) AS SELECT * FROM shop.orders;
CREATE TEMP VIEW totals AS SELECT who, sum(amount) AS amount FROM orders GROUP BY who;
CREATE TEMP VIEW unused AS SELECT * FROM shop.nothing;
INSERT INTO shop.totals SELECT * FROM totals;
INSERT INTO shop.orders VALUES (4, 'y', 1);
-- A view is read as it is now.
MERGE INTO shop.totals AS t USING totals AS s ON t.customer = s.who
WHEN MATCHED THEN UPDATE SET amount = s.amount;
CREATE OR REPLACE TEMPORARY VIEW orders AS SELECT id, customer AS who, 0 AS amount FROM shop.orders;
DELETE FROM shop.totals WHERE EXISTS (SELECT 1 FROM totals AS s WHERE s.who = customer AND s.amount = 0)
    AND customer = 'x';
DROP VIEW IF EXISTS totals;
