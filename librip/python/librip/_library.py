"""The C library: finds it, starts recording, and makes the places of the program."""

import ctypes
import errno
import os
import sys
import threading

# Functions of the standard library that acquire locks for the program: its own lines say more.
_PASSED_OVER = frozenset(
    os.path.join(os.path.dirname(threading.__file__), name)
    for name in ("threading.py", "queue.py", "contextlib.py", os.path.join("logging", "__init__.py"))
)
_TEXT_MAX = 256
_OFF = "RIP_RING=off switches it off"
# Code that is made again and again, as by `exec`, has new places each time. More than these are not recorded: what is
# done with locks has one place "elsewhere" then.
_PLACES_MAX = 10000


def _nothing(*_):
    return None


class _Span(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 5)]


class Value(ctypes.Structure):
    _fields_ = [("bits", ctypes.c_uint64), ("type", ctypes.c_uint64)]


def _candidates():
    """Where the library may be: where the environment says, beside this module, and where the loader looks."""
    named = os.environ.get("LIBRIP_LIBRARY")
    if named:
        yield named
        return
    yield os.path.join(os.path.dirname(os.path.abspath(__file__)), "librip.so")
    yield "librip.so.1"
    yield "librip.so"


def _load():
    why = None
    for path in _candidates():
        try:
            # Marks do not block: they keep the interpreter's lock.
            return ctypes.PyDLL(path), ctypes.CDLL(path), None
        except OSError as error:
            why = error
    hint = "scripts/install-c installs it, and LIBRIP_LIBRARY names it"
    return None, None, "the C library of librip is not loaded: %s; %s" % (why, hint)


_fast, _slow, _missing = _load()
_why_not = _missing or "librip.start() was not called"


def _function(name, result, *arguments):
    if _fast is None:
        return _nothing
    try:
        function = getattr(_fast, name)
    except AttributeError:
        global _missing, _why_not
        _missing = _why_not = "the C library of librip is too old: it has no %s" % name
        return _nothing
    function.restype, function.argtypes = result, arguments
    return function


_u64, _u32, _text, _values = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_char_p, ctypes.POINTER(Value)
_place_create = _function("rip_place_create", ctypes.c_void_p, _text, _u32, _text, _text, _text)
lock_wait = _function("rip_place_lock_wait", None, ctypes.c_void_p, _u64, _u32)
lock_acquired = _function("rip_place_lock_acquired", None, ctypes.c_void_p, _u64, _u32)
lock_released = _function("rip_place_lock_released", None, ctypes.c_void_p, _u64, _u32)
lock_try_failed = _function("rip_place_lock_try_failed", None, ctypes.c_void_p, _u64, _u32)
lock_number = _function("rip_lock_number", _u64)
lock_name = _function("rip_lock_name", None, ctypes.c_void_p, _text)
place_event = _function("rip_place_event", None, ctypes.c_void_p, _u32, _values, ctypes.c_size_t)
place_snap = _function("rip_place_snap", None, ctypes.c_void_p)
span_begin = _function("rip_place_span_begin", _Span, ctypes.c_void_p, _values, ctypes.c_size_t)
span_end = _function("rip_place_span_end", None, _Span)
_set_thread_name = _function("rip_set_thread_name", None, _text)
_is_recording = _function("rip_is_recording", ctypes.c_bool)
has_library = _missing is None


def start(check=False):
    """Starts recording. Returns whether the process records. With `check`, raises OSError if it does not.

    Environment variables such as RIP_RING say where, as for programs in C: see librip.h.
    """
    global _why_not
    if _missing is None:
        # Before the ring is made, so that it has room for open spans.
        place(sys._getframe(1))
        number = _slow.rip_start()
        _why_not = _OFF if number == errno.ECANCELED else os.strerror(number) if number else None
    if _why_not is not None and check:
        raise OSError("nothing is recorded: %s" % _why_not)
    return _why_not is None


def why_not():
    """Why nothing is recorded; None if the process records."""
    return None if is_recording() else _why_not or "the ring is gone"


def is_recording():
    """Whether this process records."""
    return bool(_is_recording())


def ring_path():
    """The path of the ring, which `read-rip` reads; None if there is none."""
    if _missing is not None:
        return None
    buffer = ctypes.create_string_buffer(4096)
    function = _slow.rip_ring_path
    function.restype, function.argtypes = ctypes.c_size_t, (_text, ctypes.c_size_t)
    return os.fsdecode(buffer.value) if function(buffer, len(buffer)) else None


_named = threading.local()


def set_thread_name(name):
    """Names the calling thread in the ring: up to 40 bytes.

    Without it, a thread has the name that `threading` has for it from its first wait for a lock on.
    """
    _named.is_named = True
    _set_thread_name(encoded(name))


def name_thread():
    """Gives the calling thread in the ring the name that `threading` has for it, once."""
    if not hasattr(_named, "is_named"):
        # `current_thread` makes an object for a thread that Python does not know. A new thread may wait for a lock of
        # `threading` itself before it is known: it gets its name at a later wait.
        known = threading._active.get(threading.get_ident())
        if known is threading.main_thread():
            # It has the program's name.
            _named.is_named = True
        elif known is not None:
            set_thread_name(known.name)


def encoded(text):
    """A text as the C library wants it."""
    return str(text)[:_TEXT_MAX].replace("\0", " ").encode("utf-8", "replace")


# By code and instruction, label and format. The code is kept, so that no other has its address.
_places = {}


def place(frame, label="", text=""):
    """The place in the program that a frame is at, for the C library; None if there is no room for it."""
    known = _places.get((id(frame.f_code), frame.f_lasti, label, text))
    return known[0] if known is not None else _make_place(frame, label, text)


def _make_place(frame, label, text):
    users = frame
    while users.f_code.co_filename in _PASSED_OVER and users.f_back is not None:
        users = users.f_back
    if users is not frame:
        # Which line of the program it is differs from call to call.
        return place(users, label, text)
    if len(_places) >= _PLACES_MAX:
        return None
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name)
    # An object of ctypes is passed on as it is: a number would be converted at each call.
    made = ctypes.c_void_p(
        _place_create(
            encoded(code.co_filename), frame.f_lineno or 0, encoded(name), encoded(label), encoded(text)
        )
    )
    # Two threads may make it at once: both places are of the same line.
    return _places.setdefault((id(code), frame.f_lasti, label, text), (made, code))[0]


_elsewhere = None


def elsewhere():
    """The place of what is done with locks where `place` has none."""
    global _elsewhere
    if _elsewhere is None:
        _elsewhere = ctypes.c_void_p(_place_create(b"elsewhere", 0, b"", b"", b""))
    return _elsewhere
