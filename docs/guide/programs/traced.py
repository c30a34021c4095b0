"""Stops another process as a debugger does, and never lets it go on."""
import ctypes
import signal
import subprocess

PTRACE_ATTACH = 16
libc = ctypes.CDLL(None, use_errno=True)
sleeper = subprocess.Popen(["sleep", "1000"])
if libc.ptrace(PTRACE_ATTACH, sleeper.pid, None, None) != 0:
    raise OSError(ctypes.get_errno(), "ptrace")
libc.waitpid(sleeper.pid, None, 0)
print("ready", flush=True)
signal.pause()
