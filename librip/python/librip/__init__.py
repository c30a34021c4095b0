"""Records what the threads of a program do, so that `read-rip` explains it, also after the program was killed.

    import librip

    librip.start()
    accounts = librip.Lock("accounts")       # in place of threading.Lock()
    with accounts:
        librip.event("moved {} to {}", 5, "savings")

The module calls the C library of librip by ctypes: it needs nothing to be compiled. Without the library, or if
recording fails, everything works and nothing is recorded.
"""

from librip._library import start, is_recording, ring_path, set_thread_name, why_not
from librip._locks import Lock, RLock, install, locked
from librip._events import event, snap, span

__all__ = [
    "Lock",
    "RLock",
    "event",
    "install",
    "is_recording",
    "locked",
    "ring_path",
    "set_thread_name",
    "snap",
    "span",
    "start",
    "why_not",
]
__version__ = "0.1.0"
