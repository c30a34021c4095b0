"""The locks behave as those of `threading`, whether or not anything is recorded.

    PYTHONPATH=librip/python LIBRIP_LIBRARY=.../librip.so python3 -m unittest discover -s librip/python/tests
"""

import gc
import pickle
import queue
import signal
import _thread
import threading
import time
import unittest
import unittest.mock
import weakref

import librip
from librip import _library, _locks

RECORDS = librip.start()


def in_thread(function):
    """What a function returns or raises in another thread."""
    results = []

    def run():
        try:
            results.append(function())
        except Exception as error:
            results.append(type(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


class Alike(unittest.TestCase):
    """Each test runs with the locks of `threading` too: what it expects is what these do."""

    KINDS = {"Lock": (threading.Lock, librip.Lock), "RLock": (threading.RLock, librip.RLock)}

    def each(self, *names):
        return [kind() for name in names or self.KINDS for kind in self.KINDS[name]]

    def test_one_thread_has_it_at_a_time(self):
        for lock in self.each():
            self.assertIs(lock.acquire(), True)
            self.assertIs(in_thread(lambda: lock.acquire(False)), False)
            self.assertIs(in_thread(lambda: lock.acquire(True, 0.01)), False)
            self.assertIs(in_thread(lambda: lock.acquire(timeout=0)), False)
            lock.release()
            self.assertIs(in_thread(lambda: lock.acquire(False)), True)

    def test_a_block_releases_it_whatever_happens(self):
        for lock in self.each():
            with lock as entered:
                self.assertIs(entered, True)
            with self.assertRaises(KeyError):
                with lock:
                    raise KeyError
            self.assertIs(in_thread(lambda: lock.acquire(False)), True)

    def test_wrong_arguments_are_refused(self):
        for lock in self.each():
            for arguments in ((False, 1), (True, -2), (True, 1e300), (True, "soon")):
                with self.assertRaises((ValueError, OverflowError, TypeError)):
                    lock.acquire(*arguments)
            self.assertIs(lock.acquire(False), True)

    def test_what_is_not_held_cannot_be_released(self):
        for lock in self.each():
            self.assertRaises(RuntimeError, lock.release)
            with lock:
                pass
            self.assertRaises(RuntimeError, lock.release)

    def test_any_thread_may_release_a_lock_and_no_other_an_rlock(self):
        for lock in self.each("Lock"):
            lock.acquire()
            in_thread(lock.release)
            self.assertIs(lock.locked(), False)
        for lock in self.each("RLock"):
            lock.acquire()
            self.assertIs(in_thread(lock.release), RuntimeError)
            lock.release()

    def test_an_rlock_counts(self):
        for lock in self.each("RLock"):
            with lock:
                with lock:
                    lock.acquire()
                    lock.release()
                self.assertIs(in_thread(lambda: lock.acquire(False)), False)
            self.assertIs(in_thread(lambda: lock.acquire(False)), True)

    def test_a_wait_gets_it_when_it_is_released(self):
        for lock in self.each():
            lock.acquire()
            waits = threading.Event()
            got = []

            def wait():
                waits.set()
                with lock:
                    got.append(True)

            thread = threading.Thread(target=wait)
            thread.start()
            waits.wait()
            self.assertEqual(got, [])
            lock.release()
            thread.join()
            self.assertEqual(got, [True])

    def test_conditions_and_queues_are_made_of_them(self):
        for lock in self.each():
            condition, seen = threading.Condition(lock), []

            def wait():
                with condition:
                    while not seen:
                        condition.wait()
                    seen.append("woken")

            thread = threading.Thread(target=wait)
            thread.start()
            with condition:
                with condition if isinstance(lock, self.KINDS["RLock"][1]) else threading.Lock():
                    seen.append("first")
                condition.notify_all()
            thread.join()
            self.assertEqual(seen, ["first", "woken"])

    def test_a_signal_interrupts_a_wait(self):
        for lock in self.each("Lock"):
            lock.acquire()

            signals = []

            def handler(*_):
                # The first ones may come before the wait, where they prove nothing.
                signals.append(True)
                if len(signals) == 5:
                    raise InterruptedError

            before = signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            try:
                with self.assertRaises(InterruptedError):
                    lock.acquire()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
            lock.release()

    def test_it_has_weak_references_and_cannot_be_pickled(self):
        for lock in self.each():
            self.assertIs(weakref.ref(lock)(), lock)
            self.assertRaises(Exception, pickle.dumps, lock)

    def test_many_threads_lose_no_count(self):
        for lock in self.each():
            count = [0]

            def add():
                for _ in range(500):
                    with lock:
                        count[0] += 1

            threads = [threading.Thread(target=add) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(count, [2000])


class Module(unittest.TestCase):
    def test_install_replaces_what_threading_makes(self):
        before = threading.Lock, threading.RLock
        try:
            librip.install()
            if RECORDS:
                self.assertIsInstance(threading.Condition()._lock, librip.RLock)
            jobs = queue.Queue(1)
            jobs.put(1)
            self.assertEqual(in_thread(jobs.get), 1)
            event = threading.Event()
            threading.Timer(0.01, event.set).start()
            self.assertTrue(event.wait(10))
        finally:
            threading.Lock, threading.RLock = before

    def test_a_block_on_any_lock(self):
        lock = threading.Semaphore()
        with librip.locked(lock, "one of them") as entered:
            self.assertIs(entered, lock)
            self.assertIs(lock.acquire(False), False)
        self.assertIs(lock.acquire(False), True)

    def test_a_block_only_asks_for_acquire_and_release_without_arguments(self):
        class Odd:
            is_acquired = answer = None

            def acquire(self):
                self.is_acquired = self.answer is not False
                return self.answer

            def release(self):
                self.is_acquired = False

        odd = Odd()
        with librip.locked(odd):
            self.assertIs(odd.is_acquired, True)
        self.assertIs(odd.is_acquired, False)
        odd.answer = False
        with self.assertRaises(RuntimeError), librip.locked(odd):
            self.fail("nobody has the lock")

    def test_values_of_any_type_are_taken(self):
        librip.event("{} {} {} {} {}", 1, -1, 1 << 64, 2.5, True)
        librip.event("{} {} {}", "\N{SNOWMAN}" * 100, b"\0\xff", None, level="error")
        librip.event("many {}", *range(100))
        with librip.span("all", "{}", object()), librip.span("a"):
            librip.snap()

    def test_code_that_is_made_again_and_again_ends_to_be_recorded(self):
        lock = librip.Lock()
        for number in range(20000 if RECORDS else 10):
            exec("with lock: pass", {"lock": lock})
        gc.collect()
        self.assertIs(lock.acquire(False), True)
        if RECORDS:
            self.assertEqual(len(_library._places), _library._PLACES_MAX)

    def test_where_the_stack_is_full_a_lock_is_acquired_or_not(self):
        for lock in librip.Lock(), librip.RLock(), librip.locked(threading.Lock()):
            raised = []

            def deeper():
                try:
                    with lock:
                        pass
                except RecursionError:
                    raised.append(True)
                    raise
                deeper()

            self.assertRaises(RecursionError, deeper)
            inner = getattr(lock, "_lock", lock)
            self.assertIs(in_thread(lambda: inner.acquire(False)), True)

    def test_a_thread_without_a_function_of_python_acquires_it(self):
        for lock in librip.Lock(), librip.RLock():
            # The method is all that the thread calls.
            _thread.start_new_thread(lock.acquire, ())
            while not repr(lock._lock).startswith("<locked"):
                time.sleep(0.001)

    def test_each_lock_of_the_process_has_a_number_of_its_own(self):
        if RECORDS:
            ids = [librip.Lock()._id.value for _ in range(3)]
            self.assertEqual(len(set(ids) | {_library.lock_number()}), 4)

    def test_a_lock_of_another_library_has_an_id_until_it_ends(self):
        def id_of(lock):
            return librip.locked(lock)._id.value

        if RECORDS:
            first = threading.Semaphore()
            known, address = id_of(first), id(first)
            self.assertEqual(id_of(first), known)
            del first
            gc.collect()
            self.assertNotIn(address, _locks._others)

    def test_it_says_whether_it_records(self):
        self.assertIs(librip.is_recording(), RECORDS)
        self.assertEqual(librip.why_not() is None, RECORDS)
        self.assertEqual(librip.ring_path() is None, not RECORDS)
        if not RECORDS:
            self.assertRaises(OSError, librip.start, check=True)


class Names(unittest.TestCase):
    def test_a_thread_that_waits_before_threading_knows_it_gets_its_name_later(self):
        names, held = [], librip.Lock()

        def wait():
            held.acquire(timeout=0.001)

        def run():
            ident = threading.get_ident()
            known = threading._active.pop(ident)
            wait()
            threading._active[ident] = known
            wait()
            wait()

        with held, unittest.mock.patch.object(_library, "_set_thread_name", names.append):
            thread = threading.Thread(target=run, name="late")
            thread.start()
            thread.join()
        self.assertEqual(names, [b"late"])


if __name__ == "__main__":
    unittest.main()
