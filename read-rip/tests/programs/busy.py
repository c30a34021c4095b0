# Healthy: threads that compute take turns with the interpreter's lock, take a lock of their own in between, and hand
# work to a pool.
import queue
import threading

lock = threading.Lock()
work = queue.Queue(4)


def compute():
    number = 0
    while True:
        with lock:
            number += sum(range(1000))


def produce():
    while True:
        work.put(sum(range(10000)))


def consume():
    while True:
        work.get()


for target in (compute, compute, produce, consume, consume):
    threading.Thread(target=target, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
