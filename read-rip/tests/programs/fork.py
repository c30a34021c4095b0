"""A fork while another thread has a lock. The child wants the lock. Prints the child's pid."""
import ctypes
import os
import signal
import threading

lock = threading.Lock()
taken = threading.Event()

def keep():
    with lock:
        taken.set()
        threading.Event().wait()

threading.Thread(target=keep, daemon=True).start()
taken.wait()
child = os.fork()
if child == 0:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    lock.acquire()
print(child, flush=True)
os.wait()
