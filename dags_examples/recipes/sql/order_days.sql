INSERT OVERWRITE marts.order_days BY NAME
-- The model's SELECT, with the day of the run in place of is_incremental().
SELECT count(*) AS orders, sum(amount) AS amount, to_date(changed_at) AS day
FROM shop.orders
WHERE to_date(changed_at) = DATE '{{ run_partition('day') }}'
GROUP BY to_date(changed_at)
