"""An idle pool of threads, and a first thread that waits for input."""

import concurrent.futures
import sys
import threading

pool = concurrent.futures.ThreadPoolExecutor(4)
# No task ends before all four threads have one.
together = threading.Barrier(4)
list(pool.map(lambda number: together.wait(), range(4)))
sys.stdin.read()
