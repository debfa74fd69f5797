-- Names of one, two and three parts, in backticks and in other letters.
CREATE TABLE IF NOT EXISTS lake.shop.orders (`order id` INT, State STRING, n BIGINT);
use shop;
INSERT INTO Orders VALUES (1, 'new', 1), (2, 'new', 2);
INSERT INTO `shop`.`ORDERS` (n, STATE, `Order ID`) VALUES (3, 'old', 3);
UPDATE lake.`shop`.ORDERS AS o SET n = o.n * 10 WHERE o.`order id` = 1;
DELETE FROM shop.Orders WHERE state = 'old';
USE NAMESPACE other;
CREATE TABLE copies (id INT);
INSERT INTO copies SELECT o.`ORDER ID` FROM shop.orders AS o WHERE n > 2;
