-- The day's updates: cancelled orders go, known ones change, new ones come in.
MERGE INTO shop.orders AS t
USING (SELECT DISTINCT * FROM updates) AS s
ON t.order_id = s.order_id
WHEN MATCHED AND s.cancelled THEN
    DELETE
WHEN MATCHED THEN
    UPDATE SET amount = s.amount, address.city = s.city
WHEN NOT MATCHED AND NOT s.cancelled THEN
    INSERT (order_id, customer, amount, status, address)
    VALUES (s.order_id, s.customer, s.amount, 'open', named_struct('city', s.city, 'zip', s.zip))
