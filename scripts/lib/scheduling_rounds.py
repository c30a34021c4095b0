"""Measures what `read-rip record --sched` costs processes that do nothing but wake each other.

    python3 scheduling_rounds.py ROUNDS READ_RIP PROGRAM

PROGRAM records and sleeps: it is what READ_RIP records. `perf bench sched pipe` runs on one processor, in pairs of a
run beside the recorder and a run alone, so that other work of the machine affects both alike. Prints the medians of
the processor time of an operation, which has two switches and two wake-ups, and of the ratios of the pairs: without
wake-ups and with them.
"""

import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile

OPERATIONS = 100_000
WITHOUT_TRACEFS = "umount /sys/kernel/tracing /sys/kernel/debug 2>/dev/null"
WITH_TRACEFS = "mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing"


def bench(processor):
    """Returns the microseconds of processor time of an operation."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["taskset", "-c", str(processor), "perf", "bench", "sched", "pipe", "-l", str(OPERATIONS)]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took / OPERATIONS * 1e6


def beside_recorder(processor, reader, pid, prepare):
    """The same while a recorder watches, in a mount namespace of its own."""
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "recording")
        script = f'{prepare}; exec "$0" record --sched -o "$1" "$2"'
        command = ["unshare", "--mount", "sh", "-c", script, reader, target, str(pid)]
        recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in recorder.stderr:
            if line.startswith("Recording "):
                break
        took = bench(processor)
        recorder.send_signal(signal.SIGTERM)
        recorder.communicate()
        return took


def main():
    rounds, reader, program = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    processor = max(os.sched_getaffinity(0))
    folder = tempfile.TemporaryDirectory()
    environment = dict(os.environ, RIP_RING=os.path.join(folder.name, "ring"))
    recorded = subprocess.Popen([program], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        for line in recorded.stdout:
            if "stuck" in line:
                break
        for name, prepare in [("turns", WITHOUT_TRACEFS), ("turns and wake-ups", WITH_TRACEFS)]:
            pairs = []
            for _ in range(rounds):
                watched = beside_recorder(processor, reader, recorded.pid, prepare)
                pairs.append((watched, bench(processor)))
            watched, alone = (statistics.median(times) for times in zip(*pairs))
            ratio = statistics.median(one / other for one, other in pairs)
            print(f"{name:20} {watched:6.2f} us, alone {alone:5.2f} us: {ratio:.2f} times the processor time")
    finally:
        recorded.kill()
        recorded.wait()
        folder.cleanup()


main()
