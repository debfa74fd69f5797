SET spark.sql.ansi.enabled = true;
SET spark.sql.shuffle.partitions = 3;
CREATE TABLE shop.times (id INT, at TIMESTAMP, hour INT);
SET spark.sql.session.timeZone=America/New_York;
INSERT INTO shop.times SELECT 1, TIMESTAMP '2026-01-31 12:00:00', hour(TIMESTAMP '2026-01-31 12:00:00Z');
SET TIME ZONE 'Asia/Tokyo';
INSERT INTO shop.times SELECT 2, TIMESTAMP '2026-01-31 12:00:00', hour(TIMESTAMP '2026-01-31 12:00:00Z');
UPDATE shop.times SET hour = hour(at) WHERE id = 1;
