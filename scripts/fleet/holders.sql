-- Which location is always the holder?
--
-- Each thread that waits for a lock, in each record, is one sample. A share of 100 % means: whenever a thread was seen
-- waiting for that lock, this location held it.
WITH samples AS (
    SELECT
        program, object AS lock, holder_function, holder_file, holder_line,
        count(*) AS samples, count(DISTINCT host) AS hosts, sum(for_ns) AS waited_ns
    FROM waits
    WHERE is_open AND waits_for = 'lock' AND holder_tid IS NOT NULL
    GROUP BY program, object, holder_function, holder_file, holder_line
)
SELECT
    program, lock, coalesce(holder_function, 'unknown') AS holder,
    coalesce(holder_file, '') AS file, coalesce(holder_line, 0) AS line, samples, hosts,
    round(100.0 * samples / sum(samples) OVER (PARTITION BY program, lock), 1) AS share_percent,
    round(waited_ns / 1e9, 3) AS waited_s
FROM samples
ORDER BY samples DESC, program, lock, holder
LIMIT 40;
