CREATE TABLE shop.t (id INT, p STRING) PARTITIONED BY (p);
INSERT INTO shop.t VALUES (1, 'a'), (2, 'b');
CALL sys.create_tag(table => 'shop.t', tag => 'first');
INSERT INTO shop.t VALUES (3, 'a');
CALL sys.compact(table => 'shop.t', partitions => 'p=a', order_strategy => 'order', order_by => 'id');
CALL lake.sys.rollback('shop.t', 'first');
CALL sys.expire_snapshots(table => 'shop.t', retain_max => 1, retain_min => 1, older_than => '2020-01-01 00:00:00');
CALL sys.delete_tag(table => 'shop.t', tag => 'first');
INSERT INTO shop.t VALUES (4, 'c');
