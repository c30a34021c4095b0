"""What a recorded lock costs beside that of `threading`: pairs of acquisition and release, in turns in one process. It
measures the processor time of the thread.

    PYTHONPATH=librip/python LIBRIP_LIBRARY=.../librip.so python3 librip/python/benches/lock.py
"""

import statistics
import threading
import time

import librip

ROUNDS, PAIRS = 15, 20000


def with_block(lock):
    for _ in range(PAIRS):
        with lock:
            pass


def calls(lock):
    for _ in range(PAIRS):
        lock.acquire()
        lock.release()


def nanoseconds(of, lock):
    begun = time.thread_time_ns()
    of(lock)
    return (time.thread_time_ns() - begun) / PAIRS


def main():
    librip.start()
    print("recording: %s" % (librip.why_not() or "yes"))
    kinds = (("Lock", threading.Lock(), librip.Lock()), ("RLock", threading.RLock(), librip.RLock()))
    for name, bare, recorded in kinds:
        for of in (with_block, calls):
            rounds = [(nanoseconds(of, bare), nanoseconds(of, recorded)) for _ in range(ROUNDS)]
            bare_ns, recorded_ns = (statistics.median(side) for side in zip(*rounds))
            ratio = statistics.median(recorded / bare for bare, recorded in rounds)
            print("%-5s %-10s %5.0f ns, bare %4.0f ns, ratio %4.1f" % (name, of.__name__, recorded_ns, bare_ns, ratio))


main()
