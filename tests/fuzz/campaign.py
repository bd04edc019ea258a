#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzzers side by side for a given time, and says together what they said.

    campaign.py --fuzzer=build-sanitize/tests/bin/record_fuzz [--data=reports/data] --minutes=15
                [--processes=16] [--seed=1] [--log=FILE.md] [--readers]
    campaign.py --pack=FILE.tar.gz --fuzzer=… [--data=…]

Each process has a seed of its own, from --seed on. A finding ends it; the log names it with the call
that repeats it, and another process with the next seed goes on to the end of the time. --prefix
comes before the fuzzer's call, such as "setarch -R". --readers gives one of the processes to
the readers in Python (readers_test.py, in a checkout). --log writes the counts as a table, for a
decision. --pack writes what another machine needs: the fuzzer, stripped, its libraries but for libc's, the
records, the study's template and this script; there: tar xzf FILE.tar.gz && cd campaign &&
python3 campaign.py --minutes=15.

Exit code: 0 no finding, 1 findings, 2 wrong use.
"""

import argparse
import collections
import concurrent.futures
import datetime
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FROM_LIBC = re.compile(r"/(ld-linux|libc\.|libm\.|libpthread|libdl|librt|linux-vdso)")
SURVIVED = re.compile(r"^seed (\d+): (\d+) executions over (\d+) seeds survived in (\d+) s$", re.M)
OUTCOME = re.compile(r"^  (.+?) +(\d+)$", re.M)
LEAST_SECONDS = 20  # for which another process is started behind a finding
MOST_SECONDS_MORE = 240  # for seeds, and a last execution under the sanitizers
TEMPLATE = "ablations/subjects/study/template"


def pack(options):
    """The tarball; the records lie in it as in a checkout, so that the template is found."""
    said = subprocess.run(["ldd", options.fuzzer], capture_output=True, text=True, check=True).stdout
    libraries = [pathlib.Path(path) for path in re.findall(r"=> (/\S+)", said)
                 if not FROM_LIBC.search(path)]
    with tempfile.TemporaryDirectory() as folder, tarfile.open(options.pack, "w:gz") as tar:
        stripped = pathlib.Path(folder) / "record_fuzz"
        subprocess.run(["strip", "-o", stripped, options.fuzzer], check=True)
        tar.add(stripped, "campaign/record_fuzz")
        tar.add(__file__, "campaign/campaign.py")
        for library in libraries:
            tar.add(library.resolve(), f"campaign/lib/{library.name}")
        for part in ("reports/data", TEMPLATE):
            tar.add(options.data if part == "reports/data" else ROOT / part,
                    f"campaign/{part}")
    print(f"{options.pack}: the fuzzer, {len(libraries)} libraries, the records")
    return 0


def commands(options):
    """{name: (what makes its command line from the seconds left and the attempt, folder, environment)}"""
    libraries = os.pathsep.join(filter(None, (str(HERE / "lib"), os.environ.get("LD_LIBRARY_PATH"))))

    def fuzzer(i):
        # Behind a finding the next attempt draws other damage.
        return lambda seconds, attempt: [
            *options.prefix.split(), options.fuzzer.resolve(), f"--data={options.data}",
            f"--seconds={seconds}", f"--seed={options.seed + i + attempt * options.processes}"]

    made = {f"process {i}": (fuzzer(i), None, {"LD_LIBRARY_PATH": libraries})
            for i in range(options.processes - options.readers)}
    if options.readers:
        folders = ("", "cmake", "micro", "reports", "reports/explorer", "tests", "tests/fuzz")
        # A reader's damage takes some hundredths of a second; each of the 15 gets its share.
        made["readers"] = (
            lambda seconds, _: [sys.executable, "-B", "-m", "unittest", "tests/fuzz/readers_test.py"], ROOT,
            {"MPLBACKEND": "Agg", "WARPLEDGER_FUZZ_EXAMPLES": str(max(30, round(60 * options.minutes))),
             "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in folders)})
    return made


def campaign(name, make, folder, environment, minutes):
    """[(name, exit code, what it said)] of one process after the other, until the time is over."""
    end = time.monotonic() + 60 * minutes
    ended = []
    while not ended or end - time.monotonic() > LEAST_SECONDS:
        command = make(max(1, round(end - time.monotonic())), len(ended))
        try:
            done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", env=os.environ | environment,
                                  timeout=60 * minutes + MOST_SECONDS_MORE, check=False)
            code, said = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            code, said = "none: it did not end", (error.stdout or b"").decode(errors="replace")
        ended.append((f"{name}: {' '.join(map(str, command[-3:]))}", code, said))
        print(f"{ended[-1][0]}: exit code {code}, {said.strip().splitlines()[:1]}", flush=True)
        if code == 0:
            break
    return ended


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    here = HERE / "record_fuzz"
    parser.add_argument("--fuzzer", default=here if here.exists() else
                        ROOT / "build-sanitize/tests/bin/record_fuzz", type=pathlib.Path)
    parser.add_argument("--data", default=(HERE if here.exists() else ROOT) / "reports/data",
                        type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("--readers", action="store_true")
    parser.add_argument("--pack", type=pathlib.Path)
    options = parser.parse_args()
    if not options.fuzzer.is_file():
        parser.error(f"{options.fuzzer} is not there: cmake --preset sanitize && cmake --build "
                     "build-sanitize --target record_fuzz")
    if options.pack:
        return pack(options)
    begin = time.monotonic()
    executions, fuzzed, findings, outcomes = 0, 0, [], collections.Counter()
    made = commands(options)
    with concurrent.futures.ThreadPoolExecutor(len(made)) as pool:
        running = [pool.submit(campaign, name, *what, options.minutes) for name, what in made.items()]
        for name, code, said in (ended for each in running for ended in each.result()):
            if survived := SURVIVED.search(said):
                executions += int(survived[2])
                fuzzed += int(survived[4])
                outcomes.update({what: int(count) for what, count in OUTCOME.findall(said)})
            if code != 0:
                findings.append((name, code, said[-4000:]))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = [f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, {platform.machine()}, "
             f"{options.processes} processes of {options.minutes:g} minutes from seed {options.seed} on: "
             f"{fuzzed / 3600:.2f} hours of damage, {(used.ru_utime + used.ru_stime) / 3600:.2f} of "
             f"processor time, in {time.monotonic() - begin:.0f} s, {executions} executions, "
             f"{len(findings)} findings.", "",
             "| what | how often |", "| :--- | ---: |",
             *(f"| {what} | {count} |" for what, count in sorted(outcomes.items()))]
    for name, code, said in findings:
        lines += ["", f"Finding of {name} (exit code {code}):", "", "```", said.strip(), "```"]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.log:
        options.log.write_text(text, encoding="utf-8")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
