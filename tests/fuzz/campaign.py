#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzzers side by side for a given time, and says together what they said.

    campaign.py --fuzzer=build-sanitize/tests/bin/record_fuzz [--data=reports/data] --minutes=15
                [--processes=16] [--seed=1] [--log=FILE.md] [--readers]
    campaign.py --pack=FILE.tar.gz --fuzzer=… [--data=…]

Each process has a seed of its own, from --seed on, and runs to the end of the time or to its first
finding, which the log names with the call that repeats it. --readers gives one of the processes to
the readers in Python (readers_test.py, in a checkout). --log writes the counts as a table, for a
decision. --pack writes what another machine needs: the fuzzer, its libraries but for libc's, the
records, the study's template and this script; there: tar xzf FILE.tar.gz && cd campaign &&
python3 campaign.py --minutes=15.

Exit code: 0 no finding, 1 findings, 2 wrong use.
"""

import argparse
import collections
import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FROM_LIBC = re.compile(r"/(ld-linux|libc\.|libm\.|libpthread|libdl|librt|linux-vdso)")
SURVIVED = re.compile(r"^seed (\d+): (\d+) executions over (\d+) seeds survived in (\d+) s$", re.M)
OUTCOME = re.compile(r"^  (.+?) +(\d+)$", re.M)
TEMPLATE = "ablations/subjects/study/template"


def pack(options):
    """The tarball; the records lie in it as in a checkout, so that the template is found."""
    said = subprocess.run(["ldd", options.fuzzer], capture_output=True, text=True, check=True).stdout
    libraries = [pathlib.Path(path) for path in re.findall(r"=> (/\S+)", said)
                 if not FROM_LIBC.search(path)]
    with tarfile.open(options.pack, "w:gz") as tar:
        tar.add(options.fuzzer, "campaign/record_fuzz")
        tar.add(__file__, "campaign/campaign.py")
        for library in libraries:
            tar.add(library.resolve(), f"campaign/lib/{library.name}")
        for folder in ("reports/data", TEMPLATE):
            tar.add(options.data if folder == "reports/data" else ROOT / folder,
                    f"campaign/{folder}")
    print(f"{options.pack}: the fuzzer, {len(libraries)} libraries, the records")
    return 0


def processes(options):
    """{name: running process}"""
    seconds = round(60 * options.minutes)
    environment = os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, (
        str(HERE / "lib"), os.environ.get("LD_LIBRARY_PATH"))))}
    started = {}
    for i in range(options.processes - options.readers):
        started[f"seed {options.seed + i}"] = subprocess.Popen(
            [options.fuzzer, f"--data={options.data}", f"--seconds={seconds}",
             f"--seed={options.seed + i}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", env=environment)
    if options.readers:
        folders = ("", "cmake", "micro", "reports", "reports/explorer", "tests", "tests/fuzz")
        # A reader's damage takes some hundredths of a second; each of the 15 gets its share.
        started["readers"] = subprocess.Popen(
            ["timeout", str(seconds + 600), sys.executable, "-B", "-m", "unittest",
             "tests/fuzz/readers_test.py"], cwd=ROOT, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
            env=os.environ | {"MPLBACKEND": "Agg", "WARPLEDGER_FUZZ_EXAMPLES": str(max(30, seconds)),
                              "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in folders)})
    return started


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
    executions, findings, outcomes = 0, [], collections.Counter()
    for name, process in processes(options).items():
        said = process.communicate()[0]
        if survived := SURVIVED.search(said):
            executions += int(survived[2])
            outcomes.update({what: int(count) for what, count in OUTCOME.findall(said)})
        if process.returncode != 0:
            findings.append((name, process.returncode, said[-4000:]))
        print(f"{name}: exit code {process.returncode}, {said.strip().splitlines()[:1]}", flush=True)
    hours = options.processes * options.minutes / 60
    lines = [f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, {platform.machine()}, "
             f"{options.processes} processes of {options.minutes:g} minutes from seed {options.seed} on: "
             f"{hours:.1f} hours of processor time in {time.monotonic() - begin:.0f} s, "
             f"{executions} executions, {len(findings)} findings.", "", "| what | how often |",
             "| :--- | ---: |", *(f"| {what} | {count} |" for what, count in sorted(outcomes.items()))]
    for name, code, said in findings:
        lines += ["", f"Finding of {name} (exit code {code}):", "", "```", said.strip(), "```"]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.log:
        options.log.write_text(text, encoding="utf-8")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
