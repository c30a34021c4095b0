"""A FUSE server that mounts its files and then never answers, as one that has lost its network."""
import ctypes
import os
import pathlib
import signal
import subprocess

libc = ctypes.CDLL(None, use_errno=True)
pathlib.Path("files").mkdir()
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
if libc.mount(b"silent", os.path.abspath("files").encode(), b"fuse.silent", 0, options.encode()) != 0:
    raise OSError(ctypes.get_errno(), "mount")
reader = subprocess.Popen(["cat", "files/orders"])
while pathlib.Path(f"/proc/{reader.pid}/stat").read_text().split()[2] != "D":
    pass
print("ready", flush=True)
signal.pause()
