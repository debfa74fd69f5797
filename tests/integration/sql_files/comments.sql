/* A file; with /* nested; */ comments; */ CREATE TABLE shop.a (id INT, -- the key; really
    note STRING /* ; */);
INSERT INTO shop.a VALUES (1, 'a;b'), (2, "it's; --no comment"), (3, '/* neither */') ; ;
-- DELETE FROM shop.a;
DELETE FROM shop.a WHERE note = 'a;b' -- one row;
;
UPDATE shop.a SET note = concat(note, ';') WHERE id = 2
