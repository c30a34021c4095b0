-- Which lock costs the most waiting, over all hosts and builds?
--
-- Records of one process overlap: its ring still has waits that an earlier record had. A wait is the same if its
-- thread, lock and begin are, and its longest length counts.
WITH each AS (
    SELECT program, host, boot_id, pid, thread_pid, tid, address, object, began, max(for_ns) AS took_ns
    FROM waits
    WHERE waits_for = 'lock' AND began IS NOT NULL
    GROUP BY program, host, boot_id, pid, thread_pid, tid, address, object, began
)
SELECT
    program,
    object AS lock,
    count(*) AS waits,
    count(DISTINCT host) AS hosts,
    round(sum(took_ns) / 1e9, 3) AS waited_s,
    round(avg(took_ns) / 1e6, 3) AS mean_ms,
    round(max(took_ns) / 1e6, 3) AS longest_ms
FROM each
GROUP BY program, object
ORDER BY waited_s DESC, program, lock
LIMIT 20;
