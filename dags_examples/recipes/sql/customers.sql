MERGE INTO marts.customers AS t
USING (
    -- The model's SELECT, as it was.
    SELECT customer, count(*) AS orders, max(changed_at) AS last_order
    FROM shop.orders
    GROUP BY customer
) AS s
ON t.customer = s.customer
WHEN MATCHED AND (t.orders, t.last_order) IS DISTINCT FROM (s.orders, s.last_order) THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
