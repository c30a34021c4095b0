"""Locks with the interface of those of `threading`, which record who has them and who waits.

A lock of the interpreter does the work, so waits can be interrupted by signals, and any thread may release a `Lock`.
If recording raises, as where the stack is full, an acquisition is undone and a release is done. The end of a block
needs no more of the stack than its beginning, so it does not raise.
"""

import ctypes
import sys
import threading
import weakref
import _thread

from librip._library import (
    elsewhere,
    encoded,
    has_library,
    lock_acquired,
    lock_name,
    lock_number,
    lock_released,
    lock_try_failed,
    lock_wait,
    name_thread,
    place,
)

# An object of ctypes is passed on as it is: a number would be converted at each call.
_NONE, _TRY, _REENTRANT, _REENTRANT_TRY, _OWNED, _BY_HAND = map(ctypes.c_uint32, (0, 2, 8, 10, 32, 64))


def _new_id(name):
    """Identifies a lock in the ring. The process never uses a number again, so a lock that ends needs no mark."""
    number = lock_number() or 0
    if name is not None:
        lock_name(number, encoded(name))
    return ctypes.c_uint64(number)


def _here():
    """The place of the program that called the method that calls this."""
    try:
        frame = sys._getframe(2)
    except ValueError:
        # C called the method, in a thread that is in no function of Python.
        return elsewhere()
    return place(frame) or elsewhere()


class _Recorded:
    """What the locks have in common: `_lock` is that of the interpreter, `_id` its number in the ring."""

    __slots__ = ("_lock", "_id", "_at", "__weakref__")
    _flags, _flags_of_try, _flags_of_block = _NONE, _TRY, _OWNED

    def __init__(self, lock, name):
        self._lock, self._id, self._at = lock, _new_id(name), None

    def __enter__(self):
        return self._acquire(_here(), True, -1, self._flags_of_block)

    def acquire(self, blocking=True, timeout=-1):
        """As that of the lock that it replaces."""
        flags = self._flags if blocking and timeout == -1 else self._flags_of_try
        return self._acquire(_here(), blocking, timeout, flags)

    def _acquire(self, at, blocking, timeout, flags):
        lock, is_acquired, is_waiting = self._lock, False, False
        try:
            if blocking and (timeout == -1 or 0 < timeout <= threading.TIMEOUT_MAX):
                is_acquired = lock.acquire(False)
                if not is_acquired:
                    name_thread()
                    is_waiting = True
                    lock_wait(at, self._id, flags)
                    is_acquired = lock.acquire(True, timeout)
            else:
                # It does not wait, or the lock refuses the arguments.
                is_acquired = lock.acquire(blocking, timeout)
            if is_acquired:
                lock_acquired(at, self._id, flags)
                self._at = at
            elif is_waiting:
                lock_try_failed(at, self._id, flags)
        except BaseException:
            if is_acquired:
                self._end(at, flags)
            elif is_waiting:
                lock_try_failed(at, self._id, flags)
            raise
        return is_acquired

    def __repr__(self):
        return "<librip.%s of %r>" % (type(self).__name__, self._lock)


class Lock(_Recorded):
    """In place of `threading.Lock()`. The name is what `read-rip` calls it."""

    __slots__ = ()

    def __init__(self, name=None):
        super().__init__(_thread.allocate_lock(), name)

    def release(self):
        """As that of `threading.Lock`."""
        self._end(self._at, _NONE)

    def __exit__(self, *_):
        self._end(self._at, _OWNED)

    def _end(self, at, flags):
        """Releases it, and records that before: another thread may acquire it then. No place: nobody has it."""
        try:
            if at is not None:
                lock_released(at, self._id, flags)
            self._at = None
        finally:
            self._lock.release()

    def locked(self):
        """Whether a thread has it."""
        return self._lock.locked()

    def _at_fork_reinit(self):
        at, self._at = self._at, None
        # A handler may have acquired it before the fork: then the child's thread has it.
        if at is not None:
            lock_released(at, self._id, _NONE)
        self._lock._at_fork_reinit()


class RLock(_Recorded):
    """In place of `threading.RLock()`."""

    __slots__ = ()
    _flags, _flags_of_try, _flags_of_block = _REENTRANT, _REENTRANT_TRY, _REENTRANT

    def __init__(self, name=None):
        super().__init__(_thread.RLock(), name)

    def release(self):
        """As that of `threading.RLock`."""
        self._end(self._at if self._lock._is_owned() else None, _REENTRANT)

    def __exit__(self, *_):
        self._end(self._at if self._lock._is_owned() else None, _REENTRANT)

    def _end(self, at, flags):
        """As that of `Lock`. The thread may have acquired it more than once."""
        try:
            if at is not None:
                lock_released(at, self._id, flags)
        finally:
            self._lock.release()

    def _record_releases(self):
        """Records that the thread releases it as often as it has acquired it."""
        lock = self._lock
        if not lock._is_owned():
            return
        if hasattr(lock, "_recursion_count"):
            count = lock._recursion_count()
        else:
            # Older versions say it in their text alone: "<locked _thread.RLock object owner=1 count=2 at 0x7f>".
            count = int(repr(lock).partition(" count=")[2].split()[0])
        for _ in range(count):
            lock_released(self._at, self._id, _REENTRANT)

    # What `threading.Condition` calls.

    def _is_owned(self):
        return self._lock._is_owned()

    def _release_save(self):
        self._record_releases()
        return self._lock._release_save()

    def _acquire_restore(self, state):
        try:
            at = _here()
            lock_wait(at, self._id, _REENTRANT)
        finally:
            # Whoever called this releases it.
            self._lock._acquire_restore(state)
        # The first number is how often the thread had it.
        for _ in range(state[0]):
            lock_acquired(at, self._id, _REENTRANT)
        self._at = at

    def _recursion_count(self):
        return self._lock._recursion_count()

    def _at_fork_reinit(self):
        # As for `Lock`.
        self._record_releases()
        self._at = None
        self._lock._at_fork_reinit()


# The ids of locks of other libraries, by `id(lock)`, with what says when the lock ends.
_others = {}


def _id_of_other(lock):
    known = _others.get(id(lock))
    if known is None:
        try:
            # Another object may get its address then.
            end = weakref.ref(lock, lambda _, address=id(lock): _others.pop(address, None))
        except TypeError:
            # It never ends then.
            end = lock
        known = _others.setdefault(id(lock), (_new_id(None), end))
    return known[0]


class locked:
    """Acquires a lock by its `acquire()` for the block, and releases it by `release()`. Records both.

    For locks of other libraries, as those of `multiprocessing`. What is done with the lock elsewhere is not recorded,
    so it counts as a lock that is marked by hand.
    """

    __slots__ = ("_lock", "_id", "_at")

    def __init__(self, lock, name=None):
        self._lock, self._id, self._at = lock, _id_of_other(lock), None
        if name is not None:
            lock_name(self._id.value, encoded(name))

    def __enter__(self):
        is_acquired, is_waiting, at = False, False, _here()
        try:
            name_thread()
            is_waiting = True
            # Not each library can try without waiting. So a wait is recorded that may not last.
            lock_wait(at, self._id, _BY_HAND)
            is_acquired = self._lock.acquire() is not False
            if not is_acquired:
                raise RuntimeError("acquire() of %r has returned False" % self._lock)
            self._at = at
            lock_acquired(at, self._id, _BY_HAND)
        except BaseException:
            if is_acquired:
                self.__exit__()
            elif is_waiting:
                lock_try_failed(at, self._id, _BY_HAND)
            raise
        return self._lock

    def __exit__(self, *_):
        try:
            if self._at is not None:
                lock_released(self._at, self._id, _BY_HAND)
        finally:
            self._lock.release()


def install():
    """From now on, `threading.Lock()` and `threading.RLock()` make locks that record.

    What is made of them records too: `threading.Condition`, `Event`, `Semaphore`, `queue.Queue`. Locks that exist stay
    as they are, and modules that imported the names before keep the old ones: call it first. Without the C library it
    does nothing.
    """
    if has_library:
        threading.Lock, threading.RLock = Lock, RLock
