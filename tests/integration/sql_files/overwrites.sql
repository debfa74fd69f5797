CREATE TABLE shop.static (id INT, day STRING) PARTITIONED BY (day);
CREATE TABLE shop.dynamic (id INT, day STRING) PARTITIONED BY (day);
CREATE TABLE shop.plain (id INT);
INSERT INTO shop.static VALUES (1, 'a'), (2, 'b');
INSERT INTO shop.dynamic VALUES (1, 'a'), (2, 'b');
INSERT INTO shop.plain VALUES (1);
-- As Spark does it without a setting: everything goes.
INSERT OVERWRITE shop.static SELECT 7, 'a';
INSERT OVERWRITE TABLE shop.static PARTITION (day = 'c') SELECT 8;
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE shop.dynamic VALUES (7, 'a');
INSERT OVERWRITE shop.plain SELECT 9;
SET spark.sql.sources.partitionOverwriteMode=STATIC;
INSERT OVERWRITE shop.dynamic PARTITION (day = 'b') SELECT id FROM shop.plain WHERE false;
