"""Freezes a process by its control group, as `docker pause` does."""
import pathlib
import signal
import subprocess

mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
unified = next(line.split()[4] for line in mounts if " - cgroup2 " in line)
group = pathlib.Path(unified, "read-rip-example")
group.mkdir(exist_ok=True)
sleeper = subprocess.Popen(["sleep", "1000"])
(group / "cgroup.procs").write_text(str(sleeper.pid))
(group / "cgroup.freeze").write_text("1")
while "frozen 1" not in (group / "cgroup.events").read_text():
    pass
print("ready", flush=True)
signal.pause()
