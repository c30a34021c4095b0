"""Events and spans, with values."""

import ctypes
import struct
import sys

from librip._library import Value, place, place_event, place_snap, span_begin, span_end

_LEVELS = {"trace": 1, "debug": 2, "info": 3, "warn": 4, "error": 5}
_U64, _I64, _F64, _BOOL, _TEXT = 5, 6, 8, 9, 12
_VALUES_MAX = 10
_TEXT_MAX_BYTES = 48


def _packed(values):
    """The values for the C library, what must live until it has read them, and their number."""
    values = values[:_VALUES_MAX]
    packed, kept = (Value * len(values))(), []
    for into, value in zip(packed, values):
        if isinstance(value, bool):
            into.bits, into.type = value, _BOOL
        elif isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
            into.bits, into.type = value & (1 << 64) - 1, _I64 if value < 0 else _U64
        elif isinstance(value, float):
            into.bits, into.type = struct.unpack("=Q", struct.pack("=d", value))[0], _F64
        else:
            text = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
            text = text[:_TEXT_MAX_BYTES]
            kept.append(text)
            address = ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value
            into.bits, into.type = address, _TEXT | len(text) << 8
    return packed, kept, len(values)


def event(text, *values, level="info"):
    """Records that something happened: `read-rip log` shows it.

    `text` has `{}` where the values belong. It should be a constant: each text takes room in the ring. Up to ten values
    are recorded, and of one that is no number up to 48 bytes of its text.
    """
    packed, _kept, count = _packed(values)
    place_event(place(sys._getframe(1), text), _LEVELS[level], packed, count)


def snap():
    """Records that the thread was here."""
    place_snap(place(sys._getframe(1)))


class span:
    """A block that `read-rip spans` shows with its length, and as open after a crash.

        with librip.span("import", "{} rows", len(rows)):
            ...
    """

    __slots__ = ("_name", "_text", "_values", "_span")

    def __init__(self, name, text="", *values):
        self._name, self._text, self._values, self._span = name, text, values, None

    def __enter__(self):
        packed, _kept, count = _packed(self._values)
        self._span = span_begin(place(sys._getframe(1), self._name, self._text), packed, count)
        return self

    def __exit__(self, *_):
        if self._span is not None:
            span_end(self._span)
