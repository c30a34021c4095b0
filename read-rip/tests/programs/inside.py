# Threads that wait for one another, each in a `with` block: two for locks, two for locks that store their owners, and
# the first one for the end of a thread that wants its lock.
import threading

savings, current, audit, ledger, gate = (
    threading.Lock(), threading.Condition(threading.Lock()), threading.RLock(), threading.Condition(), threading.Lock())
met = threading.Barrier(2)
met_too = threading.Barrier(2)


def save():
    with savings:
        try:
            for _ in range(1):
                met.wait()
                with current:
                    return
        except ValueError:
            pass


def spend():
    for _ in range(1):
        try:
            with current as of:
                met.wait()
                take(savings)
        finally:
            met.reset()


def take(lock):
    with lock:
        pass


def check():
    with audit:
        met_too.wait()
        with ledger:
            pass


def book():
    ledger.acquire()
    met_too.wait()
    audit.acquire()


def enter():
    with gate:
        pass


for target in (save, spend, check, book):
    threading.Thread(target=target, name=target.__name__ + "r").start()
with gate:
    child = threading.Thread(target=enter, name="child")
    child.start()
    child.join()
