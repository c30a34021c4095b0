"""Stops another process, as Ctrl-Z or a forgotten `kill -STOP` does."""
import os
import signal
import subprocess

sleeper = subprocess.Popen(["sleep", "1000"])
sleeper.send_signal(signal.SIGSTOP)
os.waitpid(sleeper.pid, os.WUNTRACED)
print("ready", flush=True)
signal.pause()
