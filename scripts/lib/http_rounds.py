"""Compares the throughput of HTTP servers: wrk asks each in turn, for one second, in rounds of a random order.

    python3 http_rounds.py ROUNDS NAME=PROGRAM...

The first server is the one to which the others are compared. Prints the median of the ratios of all rounds, and the
range from the first to the third quartile, of the requests a second and of the server's processor time for a request:
once for requests that the task of a connection answers, and once for requests that are tasks of their own.
"""

import os
import random
import re
import statistics
import subprocess
import sys


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        # The name, in parentheses, may have spaces. User and system time follow it as the 12th and 13th word.
        words = stat.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def ask(server, port, seconds):
    """Returns the requests a second, and the microseconds of processor time for each."""
    before = processor_seconds(server.pid)
    command = ["wrk", "-t1", "-c50", f"-d{seconds}s", f"http://127.0.0.1:{port}/"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Socket errors" in said or "Non-2xx" in said:
        sys.exit(f"the server at port {port} has failed:\n{said}")
    requests = int(re.search(r"(\d+) requests in", said).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1))
    return rate, (processor_seconds(server.pid) - before) / requests * 1e6


def median_and_ratios(of_server, bare):
    first, median, third = statistics.quantiles([here / beside for here, beside in zip(of_server, bare)], n=4)
    return f"{statistics.median(of_server):>9.1f} {median:>6.2f}  ({first:.2f} to {third:.2f})"


def measure(rounds, programs, arguments):
    servers, seen = {}, {name: [] for name in programs}
    try:
        for name, program in programs.items():
            pipe = subprocess.PIPE
            servers[name] = subprocess.Popen([program, *arguments], stdin=pipe, stdout=pipe, text=True)
        ports = {name: int(server.stdout.readline()) for name, server in servers.items()}
        for name, port in ports.items():
            ask(servers[name], port, 1)
        for _ in range(rounds):
            for name in random.sample(list(ports), len(ports)):
                seen[name].append(ask(servers[name], ports[name], 1))
    finally:
        for server in servers.values():
            server.communicate()
    columns = {name: list(zip(*of_server)) for name, of_server in seen.items()}
    bare = next(iter(columns.values()))
    print(f"{'':<10} {'requests/s':>9} {'ratio':>6}  {'':<14}  {'us/request':>10} {'ratio':>6}")
    for name, of_server in columns.items():
        rate, time = (median_and_ratios(*both) for both in zip(of_server, bare))
        print(f"{name:<10} {rate}  {time}", flush=True)


def main():
    rounds = int(sys.argv[1])
    programs = dict(argument.split("=", 1) for argument in sys.argv[2:])
    for title, arguments in [("the task of the connection answers", []), ("each request is a task", ["task"])]:
        print(f"\n{title}", flush=True)
        measure(rounds, programs, arguments)


main()
