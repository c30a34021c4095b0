"""Locks with the interface of those of `threading`, which record who has them and who waits.

A lock of the interpreter does the work, so waits can be interrupted by signals, and any thread may release a `Lock`.
"""

import ctypes
import itertools
import sys
import threading
import _thread

from librip._library import (
    encoded,
    has_library,
    lock_acquired,
    lock_name,
    lock_released,
    lock_try_failed,
    lock_wait,
    name_thread,
    place,
)

# An object of ctypes is passed on as it is: a number would be converted at each call.
_NONE, _TRY, _REENTRANT, _REENTRANT_TRY, _OWNED = map(ctypes.c_uint32, (0, 2, 8, 10, 32))
# Identifies locks in the ring. A number is never used again, so a lock that ends needs no mark.
_numbers = itertools.count(1 << 40, 8)


class _Recorded:
    """What the locks have in common: `_lock` is that of the interpreter, `_id` its number in the ring."""

    __slots__ = ("_lock", "_id", "_at", "__weakref__")
    _flags, _flags_of_try = _NONE, _TRY

    def __init__(self, lock, name):
        number = next(_numbers)
        self._lock, self._id, self._at = lock, ctypes.c_uint64(number), None
        if name is not None:
            lock_name(number, encoded(name))

    def acquire(self, blocking=True, timeout=-1):
        """As that of the lock that it replaces."""
        return self._acquire(sys._getframe(1), blocking, timeout, self._flags)

    def _acquire(self, frame, blocking, timeout, flags):
        lock = self._lock
        if not blocking or timeout != -1:
            flags = self._flags_of_try
            if not blocking or not 0 < timeout <= threading.TIMEOUT_MAX:
                # It does not wait, or the lock refuses the arguments.
                is_acquired = lock.acquire(blocking, timeout)
                if is_acquired:
                    at = place(frame)
                    lock_acquired(at, self._id, flags)
                    self._at = at
                return is_acquired
        at = place(frame)
        if lock.acquire(False):
            lock_acquired(at, self._id, flags)
            self._at = at
            return True
        name_thread()
        lock_wait(at, self._id, flags)
        is_acquired = False
        try:
            is_acquired = lock.acquire(True, timeout)
        finally:
            if is_acquired:
                lock_acquired(at, self._id, flags)
                self._at = at
            else:
                lock_try_failed(at, self._id, flags)
        return is_acquired

    def __exit__(self, *_):
        self.release()

    def __repr__(self):
        return "<librip.%s of %r>" % (type(self).__name__, self._lock)


class Lock(_Recorded):
    """In place of `threading.Lock()`. The name is what `read-rip` calls it."""

    __slots__ = ()

    def __init__(self, name=None):
        super().__init__(_thread.allocate_lock(), name)

    def __enter__(self):
        lock = self._lock
        if not lock.acquire(False):
            return self._acquire(sys._getframe(1), True, -1, _OWNED)
        at = place(sys._getframe(1))
        lock_acquired(at, self._id, _OWNED)
        self._at = at
        return True

    def release(self):
        """As that of `threading.Lock`."""
        at, self._at = self._at, None
        # Before the release: another thread may acquire it then. Nobody has it if there is no place.
        if at is not None:
            lock_released(at, self._id, _NONE)
        self._lock.release()

    def __exit__(self, *_):
        at, self._at = self._at, None
        if at is not None:
            lock_released(at, self._id, _OWNED)
        self._lock.release()

    def locked(self):
        """Whether a thread has it."""
        return self._lock.locked()

    def _at_fork_reinit(self):
        self._at = None
        self._lock._at_fork_reinit()


class RLock(_Recorded):
    """In place of `threading.RLock()`."""

    __slots__ = ()
    _flags, _flags_of_try = _REENTRANT, _REENTRANT_TRY

    def __init__(self, name=None):
        super().__init__(_thread.RLock(), name)

    def __enter__(self):
        lock = self._lock
        if not lock.acquire(False):
            return self._acquire(sys._getframe(1), True, -1, _REENTRANT)
        at = place(sys._getframe(1))
        lock_acquired(at, self._id, _REENTRANT)
        self._at = at
        return True

    def release(self):
        """As that of `threading.RLock`."""
        if self._lock._is_owned():
            lock_released(self._at, self._id, _REENTRANT)
        self._lock.release()

    # What `threading.Condition` calls.

    def _is_owned(self):
        return self._lock._is_owned()

    def _release_save(self):
        state = self._lock._release_save()
        # The first number is how often the thread had it.
        for _ in range(state[0]):
            lock_released(self._at, self._id, _REENTRANT)
        return state

    def _acquire_restore(self, state):
        at = place(sys._getframe(1))
        lock_wait(at, self._id, _REENTRANT)
        self._lock._acquire_restore(state)
        for _ in range(state[0]):
            lock_acquired(at, self._id, _REENTRANT)
        self._at = at

    def _recursion_count(self):
        return self._lock._recursion_count()

    def _at_fork_reinit(self):
        self._at = None
        self._lock._at_fork_reinit()


class locked:
    """Acquires any lock that has `acquire` and `release` for the block, and records it.

    For locks of other libraries, as those of `multiprocessing`. What is done with the lock elsewhere is not recorded.
    """

    __slots__ = ("_lock", "_id", "_at")

    def __init__(self, lock, name=None):
        self._lock, self._id, self._at = lock, ctypes.c_uint64(id(lock)), None
        if name is not None:
            lock_name(id(lock), encoded(name))

    def __enter__(self):
        at = place(sys._getframe(1))
        if not self._lock.acquire(False):
            name_thread()
            lock_wait(at, self._id, _NONE)
            is_acquired = False
            try:
                is_acquired = self._lock.acquire()
            finally:
                if not is_acquired:
                    lock_try_failed(at, self._id, _NONE)
        lock_acquired(at, self._id, _NONE)
        self._at = at
        return self._lock

    def __exit__(self, *_):
        lock_released(self._at, self._id, _NONE)
        self._lock.release()


def install():
    """From now on, `threading.Lock()` and `threading.RLock()` make locks that record.

    So do what is made of them: `threading.Condition`, `Event`, `Semaphore`, `queue.Queue`. Locks that exist stay as
    they are, and so does who imported the names before: call it first. Without the C library it does nothing.
    """
    if has_library:
        threading.Lock, threading.RLock = Lock, RLock
