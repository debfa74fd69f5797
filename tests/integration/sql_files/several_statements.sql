CREATE TABLE shop.orders (id INT, amount DECIMAL(10, 2), day STRING) PARTITIONED BY (day);
CREATE TABLE shop.updates (id INT, amount DECIMAL(10, 2), day STRING, gone BOOLEAN);
INSERT INTO shop.orders VALUES (1, 10.00, 'a'), (2, 20.00, 'a'), (3, 30.00, 'b');
INSERT INTO shop.updates VALUES (1, 11.50, 'a', false), (2, NULL, 'a', true), (4, 40.00, 'c', false);
MERGE INTO shop.orders AS t USING shop.updates AS s ON t.id = s.id
WHEN MATCHED AND s.gone THEN DELETE
WHEN MATCHED THEN UPDATE SET amount = s.amount
WHEN NOT MATCHED THEN INSERT (id, amount, day) VALUES (s.id, s.amount, s.day);
ALTER TABLE shop.orders DROP IF EXISTS PARTITION (day = 'b');
TRUNCATE TABLE shop.updates;
