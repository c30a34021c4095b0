"""Lets all commands of read-rip read damaged files, and real parsers what they write: see scripts/fuzz.

    mutated.py READ_RIP MUTATE SEEDS FOLDER SECONDS [FIRST]

SEEDS is a folder of sound files. FOLDER takes the damaged ones; what a finding needs stays there. The damage has a
number, and begins with FIRST, so that a finding can be repeated. A finding is a signal, a panic, a status that the
documentation does not have, too much time or memory, a control character on its way to a terminal, or output that a
parser refuses. A parser that is not installed is named once.
"""

import html.parser
import importlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

SECONDS_MAX = 20
MEMORY_MAX = 2 << 30
STATUSES = (0, 1, 2, 3)
# Controls but for line feeds and tabs, and what changes the direction of text.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")

missing = set()


def package(name):
    """A package of Python, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing.add(f"python3 package {name}")
        return None


def program(name):
    """Whether a program is installed."""
    if shutil.which(name) is None:
        missing.add(name)
        return False
    return True


def run_parser(*command):
    out = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=SECONDS_MAX)
    if out.returncode != 0:
        raise ValueError(f"{command[0]}: {out.stderr.decode(errors='replace')[:300]}")


def text_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


# One function a format: it raises if the file is not what it should be.


def parse_plain(path):
    found = CONTROL.search(text_of(path))
    if found:
        raise ValueError(f"control character {found.group()!r} at {found.start()}")


def parse_json_lines(path):
    for line in text_of(path).split("\n"):
        if line:
            data = json.loads(line)
            if set(data) != {"type", "data"}:
                raise ValueError(f"a line with {sorted(data)}")


def parse_tables(path):
    for line in text_of(path).split("\n"):
        if line and not isinstance(json.loads(line), dict):
            raise ValueError("a line that is no row")


def parse_json(path):
    text = text_of(path)
    if text and not isinstance(json.loads(text), dict | list):
        raise ValueError("neither an object nor a list")


def parse_xml(path):
    xml.etree.ElementTree.parse(path)


def parse_dot(path):
    parse_plain(path)
    if program("dot"):
        run_parser("dot", "-Tplain", "-o", os.devnull, path)


def parse_folded(path):
    for line in text_of(path).split("\n"):
        if line and not re.fullmatch(r".* [0-9]+", line):
            raise ValueError(f"a line without a count: {line!r}")


def parse_openmetrics(path):
    text = text_of(path)
    if not text.endswith("# EOF\n"):
        raise ValueError("no end")
    parser = package("prometheus_client.openmetrics.parser")
    if parser:
        list(parser.text_string_to_metric_families(text))


def parse_parquet(folder):
    duckdb = package("duckdb")
    if duckdb and os.path.isdir(folder):
        for at, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(at, name).replace("'", "''")
                # As text: Python's times would need another package.
                duckdb.sql(f"SELECT COLUMNS(*)::VARCHAR FROM read_parquet('{path}')").fetchall()


def parse_ctf(folder):
    if program("babeltrace2") and os.path.isdir(folder):
        run_parser("babeltrace2", folder)


def parse_perfetto(path):
    trace = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    if trace:
        with open(path, "rb") as file:
            trace.Trace().ParseFromString(file.read())


class Page(html.parser.HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self):
        super().__init__()
        self.scripts = 0
        self.handlers = []

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def page_of(path):
    page = Page()
    page.feed(text_of(path))
    page.close()
    return page


def parse_page(path, sound):
    page = page_of(path)
    if page.scripts > sound.scripts or page.handlers:
        raise ValueError(f"{page.scripts} scripts for {sound.scripts}, and {page.handlers}")


EXPORTS = {
    "chrome": parse_json,
    "perfetto": parse_perfetto,
    "firefox": parse_json,
    "ctf": parse_ctf,
    "dot": parse_dot,
    "ndjson": parse_tables,
    "parquet": parse_parquet,
    "openmetrics": parse_openmetrics,
    "folded": parse_folded,
}
VIEWS = [
    [],
    ["-t", "-v"],
    ["info"],
    ["locks", "--all", "-v"],
    ["tasks", "--all", "-v"],
    ["tasks", "--all", "-t"],
    ["log"],
    ["spans"],
    ["captures"],
    ["stacks"],
    ["check", "--threshold", "1us"],
]


def commands(target, work, sound):
    """Each command line, and what parses its output or its file."""
    for view in VIEWS:
        yield [*view, target], None, parse_plain
        yield ["--json", *view, target], None, parse_json_lines
    yield ["diff", target, target], None, parse_plain
    yield ["list", "--dir", os.path.dirname(target)], None, parse_plain
    yield ["check", "--all", "--dir", os.path.dirname(target)], None, parse_plain
    yield ["gc", "--dry-run", "--dir", os.path.dirname(target)], None, parse_plain
    for name, parse in EXPORTS.items():
        out = os.path.join(work, f"export-{name}")
        yield ["export", "-f", name, "-o", out, target], out, parse
    junit, sarif = os.path.join(work, "junit.xml"), os.path.join(work, "out.sarif")
    yield ["check", "--junit", junit, target], junit, parse_xml
    yield ["check", "--sarif", sarif, target], sarif, parse_json
    page = os.path.join(work, "page.html")
    yield ["report", "-o", page, target], page, lambda path: parse_page(path, sound)
    saved = os.path.join(work, "again.gz")
    yield ["save", "-o", saved, target], None, parse_plain


def limit():
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def finding(read_rip, arguments, written, parse, output):
    """What is wrong with a run; None if nothing is."""
    try:
        with open(output, "wb") as out:
            done = subprocess.run(
                [read_rip, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                timeout=SECONDS_MAX,
                preexec_fn=limit,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            )
    except subprocess.TimeoutExpired:
        return f"took more than {SECONDS_MAX} s"
    said = done.stderr.decode("utf-8", errors="surrogateescape")
    if done.returncode not in STATUSES:
        return f"status {done.returncode}: {said[-500:]}"
    if "panicked" in said or "there is no memory" in said:
        return said[-500:]
    if CONTROL.search(said):
        return f"a control character on standard error: {said!r}"
    path = written or output
    # Where nothing can be written, there is an error and no file.
    if written and not os.path.exists(written):
        return None if done.returncode != 0 else f"status 0, and no {written}"
    try:
        parse(path)
    except (ValueError, OSError, xml.etree.ElementTree.ParseError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # What a parser of another package raises.
        return f"a parser refuses it: {type(error).__name__}: {error}"
    return None


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


def main():
    read_rip, mutate, seeds, folder, seconds = sys.argv[1:6]
    number = int(sys.argv[6]) if len(sys.argv) > 6 else 0
    end = time.monotonic() + float(seconds)
    names = sorted(os.listdir(seeds))
    place, work = os.path.join(folder, "damaged"), os.path.join(folder, "out")
    os.makedirs(place, exist_ok=True)
    sound = {}
    runs = files = findings = 0
    while files < len(names) or time.monotonic() < end:
        name = names[number % len(names)]
        seed, target = os.path.join(seeds, name), os.path.join(place, name)
        if name not in sound:
            page = os.path.join(folder, "sound.html")
            subprocess.run([read_rip, "report", "-o", page, seed], check=False, capture_output=True)
            sound[name] = page_of(page) if os.path.exists(page) else Page()
        subprocess.run([mutate, seed, str(number), target], check=True)
        remove(work)
        os.makedirs(work)
        for arguments, written, parse in commands(target, work, sound[name]):
            runs += 1
            found = finding(read_rip, arguments, written, parse, os.path.join(work, "stdout"))
            if found:
                findings += 1
                kept = os.path.join(folder, f"finding-{number}-{name}")
                shutil.copyfile(target, kept)
                print(f"FINDING: read-rip {' '.join(arguments).replace(target, kept)}\n    {found}")
                break
        remove(target)
        files, number = files + 1, number + 1
    print(f"{files} damaged files, {runs} runs, {findings} findings; the next number is {number}")
    for what in sorted(missing):
        print(f"    skipped: {what} is missing")
    sys.exit(1 if findings else 0)


main()
