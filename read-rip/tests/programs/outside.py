# Healthy: threads that are in `with` blocks on locks which they have released there, or work there while others wait.
import contextlib
import queue
import threading
import time


@contextlib.contextmanager
def unlocked(lock):
    lock.release()
    try:
        yield
    finally:
        lock.acquire()


def releases(one, other):
    one.release()
    with other:
        pass
    one.acquire()


def lets_go(one, other):
    with one:
        one.release()
        with other:
            pass
        one.acquire()


def lets_go_by_call(one, other):
    with one:
        releases(one, other)


def waits(one, other):
    # The condition lets go of the lock.
    with one:
        threading.Condition(one).wait()


def keeps(one, other):
    with other:
        time.sleep(0.1)
        with one:
            time.sleep(1.5)


def use(way):
    while True:
        one, other = threading.Lock(), threading.Lock()
        threads = [threading.Thread(target=of, args=(one, other), daemon=True) for of in (keeps, way)]
        for thread in threads:
            thread.start()
        threads[0].join()


def work(lock):
    while True:
        with lock:
            time.sleep(1.5)


def want(lock):
    while True:
        with lock:
            pass


lock, recursive, turns, jobs = threading.Lock(), threading.RLock(), threading.Semaphore(), queue.Queue(2)
targets = [(use, lets_go), (use, lets_go_by_call), (use, waits)]
targets += [(of, kind) for kind in (lock, recursive, turns) for of in (work, want, want)]
for target, argument in targets:
    threading.Thread(target=target, args=(argument,), daemon=True).start()
threading.Thread(target=jobs.get, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
