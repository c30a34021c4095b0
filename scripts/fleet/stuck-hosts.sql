-- Which hosts are stuck now?
--
-- Now is the time of the newest record. A process counts if its own newest record is less than 15 minutes older, it
-- lives, and something is found in it. One that ended may have a last record that is older than the one before: its
-- record ends where the last event is. The finding that hurts most threads is shown.
WITH newest AS (
    SELECT
        host, boot_id, program, pid, max(taken) AS taken, max(CASE WHEN state = 'alive' THEN 0 ELSE 1 END) AS has_ended
    FROM processes
    GROUP BY host, boot_id, program, pid
), present AS (
    SELECT p.host, p.boot_id, p.program, p.pid, p.taken, p.waiting, p.present, p.longest_wait_ns
    FROM processes AS p
    JOIN newest AS n ON p.host = n.host AND p.boot_id = n.boot_id AND p.program = n.program AND p.pid = n.pid
        AND p.taken = n.taken
    WHERE n.has_ended = 0 AND p.findings > 0
        AND p.taken > (SELECT max(taken) FROM processes) - INTERVAL 15 MINUTE
), ranked AS (
    SELECT
        p.host AS host, p.program AS program, p.pid AS pid, p.taken AS taken, p.waiting AS waiting,
        p.present AS present, p.longest_wait_ns AS longest_wait_ns, f.confidence AS confidence, f.kind AS kind,
        f.summary AS summary,
        row_number() OVER (
            PARTITION BY p.host, p.boot_id, p.program, p.pid ORDER BY f.threads_hurt DESC, f.kind
        ) AS place
    FROM present AS p
    JOIN findings AS f ON p.host = f.host AND p.boot_id = f.boot_id AND p.program = f.program AND p.pid = f.pid
        AND p.taken = f.taken
)
SELECT
    host, program, pid, waiting, present, round(longest_wait_ns / 1e9, 1) AS longest_wait_s, confidence, kind, summary
FROM ranked
WHERE place = 1
ORDER BY waiting DESC, host, program, pid
LIMIT 100;
