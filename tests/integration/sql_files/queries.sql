CREATE TABLE shop.numbers (n INT, word STRING);
INSERT INTO shop.numbers VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, NULL);
CREATE TABLE shop.found (n INT, word STRING);
WITH odd AS (SELECT * FROM shop.numbers WHERE n % 2 = 1)
INSERT INTO shop.found SELECT n, upper(word) FROM odd;
INSERT INTO shop.found (word, n)
SELECT coalesce(a.word, 'none'), a.n FROM shop.numbers a LEFT JOIN shop.found b ON a.n = b.n
WHERE b.n IS NULL
UNION ALL SELECT word, n * 100 FROM (TABLE shop.numbers) WHERE n IN (SELECT max(n) - 1 FROM shop.numbers);
UPDATE shop.found SET word = (SELECT max(word) FROM shop.numbers) WHERE n = 2;
