-- What changed with the new build?
--
-- Of each program, the build that was seen first most recently is the new one, and the build before it the old one.
-- The newest record of each process counts. Locks are the same if they have the same name: those that are only named
-- by their place have another one when their line moves.
WITH builds AS (
    SELECT
        program, build_id,
        row_number() OVER (PARTITION BY program ORDER BY min(taken) DESC, build_id) AS age
    FROM processes
    WHERE build_id IS NOT NULL
    GROUP BY program, build_id
), newest AS (
    SELECT host, boot_id, program, pid, max(taken) AS taken
    FROM processes
    GROUP BY host, boot_id, program, pid
), of_build AS (
    SELECT
        l.program AS program, l.lock AS lock, b.age AS age, sum(l.acquisitions) AS acquisitions,
        sum(l.contended) AS contended, sum(l.waits) AS waits, sum(l.wait_ns) AS wait_ns,
        max(l.wait_max_ns) AS wait_max_ns
    FROM locks AS l
    JOIN newest AS n ON l.host = n.host AND l.boot_id = n.boot_id AND l.program = n.program AND l.pid = n.pid
        AND l.taken = n.taken
    JOIN builds AS b ON l.program = b.program AND l.build_id = b.build_id
    WHERE b.age <= 2
    GROUP BY l.program, l.lock, b.age
), compared AS (
    SELECT
        program, lock,
        max(CASE WHEN age = 2 AND waits > 0 THEN wait_ns / waits END) AS old_wait_ns,
        max(CASE WHEN age = 1 AND waits > 0 THEN wait_ns / waits END) AS new_wait_ns,
        max(CASE WHEN age = 2 AND acquisitions > 0 THEN contended / acquisitions END) AS old_contended,
        max(CASE WHEN age = 1 AND acquisitions > 0 THEN contended / acquisitions END) AS new_contended,
        max(CASE WHEN age = 2 THEN wait_max_ns END) AS old_max_ns,
        max(CASE WHEN age = 1 THEN wait_max_ns END) AS new_max_ns
    FROM of_build
    GROUP BY program, lock
)
SELECT
    program, lock,
    round(old_wait_ns / 1e6, 3) AS old_mean_ms, round(new_wait_ns / 1e6, 3) AS new_mean_ms,
    round(new_wait_ns / old_wait_ns, 2) AS times,
    round(old_contended * 100, 1) AS old_contended_percent, round(new_contended * 100, 1) AS new_contended_percent,
    round(old_max_ns / 1e6, 3) AS old_longest_ms, round(new_max_ns / 1e6, 3) AS new_longest_ms
FROM compared
WHERE new_wait_ns IS NOT NULL OR old_wait_ns IS NOT NULL
ORDER BY coalesce(new_wait_ns, 0) - coalesce(old_wait_ns, 0) DESC, program, lock
LIMIT 40;
