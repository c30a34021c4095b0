# One thread has the mutex of a library in C and wants the interpreter's lock. The other one has that, and wants the
# mutex. The argument is the library.
import ctypes
import sys
import threading

releases, keeps = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])
called = ctypes.CFUNCTYPE(None)(lambda: None)


def flusher():
    releases.flush_registry(called)


def adder():
    keeps.add_entry()


threads = [threading.Thread(target=of, name=of.__name__) for of in (flusher, adder)]
print("ready", flush=True)
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
