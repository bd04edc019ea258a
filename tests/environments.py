#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of ./test on an existing build under a matrix of environments.

Each row changes one thing: the processor features that OpenBLAS, NumPy or libm use, the locale,
the time zone, the umask, the user, or the path of the checkout. The last rows build the program
by another compiler or for another processor, and compare the summaries of records byte by byte.

    build/venv/bin/python tests/environments.py                    every row (an hour on two cores)
    build/venv/bin/python tests/environments.py --only turkish     one row
    build/venv/bin/python tests/environments.py --cheap            what ./test runs (under a minute)

A row that this machine can't run is skipped, and the reason stands in the table. Logs stay in
--work. The rows `spaces` and `ordinary_user` test a fresh clone of the last commit, built without
CUDA unless --with_cuda says otherwise; they install requirements.txt from PyPI into it.

Exit codes: 0 no row failed; 1 a row failed; 2 wrong use; 77 every row was skipped.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Tests that draw, format figures, sort, parse, start programs or write files: those that an
# environment can change. --cheap runs them alone, so those of more than 3 s are not among them.
SENSITIVE = (
    "cli_test", "cli_compare_test", "cli_record_test", "git_info_test", "gpu_scripts_test",
    "micro_pages_test", "micro_record_sh_test", "peers_fp8_test", "peers_run_test",
    "plots_dtypes_test", "profile_test", "record_test", "report_regenerate_test",
    "report_pages_render_test", "report_step_samples_test", "report_model_text_test", "setup_test",
    "summarize_test", "summarize_tests_test")
# Newest records of these designs: each has another part of summary.json.
HANDFUL = ("calibrate", "factorial", "fusion", "hopper_decode", "ladder", "leave_one_out")
NOBODY = 65534
PRIVATE = 0o077
NO_AVX2_IN_GLIBC = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable"}


class Skipped(Exception):
    """Why this machine can't run a row."""


class Failed(Exception):
    """What a row found, in one line."""


@dataclasses.dataclass
class Run:
    """What the command line says, and where things lie."""

    build: pathlib.Path
    work: pathlib.Path
    jobs: int
    cheap: bool = False
    all_records: bool = False
    with_cuda: bool = False
    clone: pathlib.Path | None = None
    scratch: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)

    def cached(self, name):
        """A value of the build's CMake cache."""
        found = re.search(rf"^{name}:\w+=(.*)$",
                          (self.build / "CMakeCache.txt").read_text(encoding="utf-8"), re.MULTILINE)
        return found.group(1) if found else ""

    @property
    def python(self):
        return self.cached("WARPLEDGER_PYTHON")


def call(command, log=None, environment=None, **options):
    """Runs a command; Failed, with where its output is, if it fails. Returns its output."""
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False,
                          env={**os.environ, **(environment or {})}, **options)
    if log:
        with open(log, "a", encoding="utf-8") as file:
            file.write(done.stdout)
    if done.returncode != 0:
        last = done.stdout.strip().splitlines()[-1:] or ["no output"]
        raise Failed(f"{pathlib.Path(command[0]).name}: exit code {done.returncode}: {last[0]}"
                     + (f" ({log})" if log else ""))
    return done.stdout


def suite(run, folder, build, environment=None, **options):
    """Runs the tests of `build` that need no GPU, and says how many passed."""
    # ctest writes its logs where it starts, and another one may be running in the build.
    (folder / "CTestTestfile.cmake").write_text(f'subdirs("{build}")\n', encoding="utf-8")
    if options.get("user") is not None:
        os.chown(folder, options["user"], options["group"])
    junit, log = folder / "ctest.xml", folder / "ctest.log"
    junit.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error",
               "-j", run.jobs, "-LE", "^(gpu|long)$", "-E", "^environments_test$",
               "--output-junit", junit]
    if run.cheap:
        command += ["-R", f"^({'|'.join(SENSITIVE)})$"]
    try:
        call(command, log, environment, **options)
        failure = None
    except Failed as error:
        failure = error
    if not junit.exists():
        raise failure or Failed(f"ctest wrote no {junit}")
    cases = list(ElementTree.parse(junit).iter("testcase"))
    ran = [case for case in cases if case.get("status") in ("run", "fail")]
    failed = [case.get("name") for case in ran if case.get("status") == "fail"]
    if failed or failure:
        said = f"{len(failed)} of {len(ran)}: {', '.join(sorted(failed))} ({log})"
        raise Failed(said if failed else str(failure))
    if run.cheap and (absent := set(SENSITIVE) - {case.get("name") for case in cases}):
        raise Failed(f"the build has no test named {', '.join(sorted(absent))}")
    return f"{len(ran)} tests passed" + (f", {len(cases) - len(ran)} skipped themselves"
                                         if len(cases) > len(ran) else "")


# --- Processor features ------------------------------------------------------------

_FEATURES = ("from numpy._core import _multiarray_umath as m;"
             "print(*[n for n in m.__cpu_dispatch__ if m.__cpu_features__.get(n)])")
_CORE_TYPE = """
import ctypes, re, numpy
with open("/proc/self/maps") as maps:
    libraries = sorted(set(re.findall(r"\\S*openblas\\S*", maps.read())))
for library in map(ctypes.CDLL, libraries):
    for name in ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename"):
        if hasattr(library, name):
            function = getattr(library, name)
            function.restype = ctypes.c_char_p
            print(function().decode())
            raise SystemExit
"""
_LIBM = """
import hashlib, math
values = [f(0.01 + i / 97) for f in (math.exp, math.log, math.sin) for i in range(3000)]
print(hashlib.sha256(repr(values).encode()).hexdigest())
"""


def probe(run, code, environment=None):
    # A warning is an error: NumPy warns of a name that it can't switch off.
    return call([run.python, "-W", "error", "-c", code], environment=environment).strip()


def with_blas(core_type, needs):
    def row(run, folder):
        features = probe(run, "from numpy._core import _multiarray_umath as m;"
                              "print(*[n for n, on in m.__cpu_features__.items() if on])").split()
        if missing := set(needs) - set(features):
            raise Skipped(f"this processor lacks {', '.join(sorted(missing))}")
        environment = {"OPENBLAS_CORETYPE": core_type}
        told = probe(run, _CORE_TYPE, environment)
        if not told:
            raise Skipped("NumPy has another BLAS than OpenBLAS here")
        # Katmai stands for Prescott's kernels in builds that leave out older processors.
        if told not in (core_type, {"Prescott": "Katmai"}.get(core_type)):
            raise Failed(f"OpenBLAS takes {told} for it")
        return suite(run, folder, run.build, environment)

    return row


def without_numpy_features(pattern):
    def row(run, folder):
        off = [name for name in probe(run, _FEATURES).split() if re.fullmatch(pattern, name)]
        if not off:
            raise Skipped("NumPy dispatches to none of these here")
        environment = {"NPY_DISABLE_CPU_FEATURES": " ".join(off)}
        if still := set(probe(run, _FEATURES, environment).split()) & set(off):
            raise Failed(f"NumPy still uses {', '.join(sorted(still))}")
        return suite(run, folder, run.build, environment)

    return row


def other_libm(run, _folder):
    if probe(run, _LIBM) == probe(run, _LIBM, NO_AVX2_IN_GLIBC):
        raise Skipped("libm has one variant of exp, log and sin here")
    return NO_AVX2_IN_GLIBC


# --- Locale, time, permissions, paths ----------------------------------------------


def turkish(run, folder):
    """The variables of a locale that is made for the row: few machines have it installed."""
    name = "tr_TR.UTF-8"
    if not shutil.which("localedef"):
        raise Skipped("there is no localedef (package libc-bin)")
    locales = folder / "locales"
    locales.mkdir(exist_ok=True)
    if not (locales / name).exists():  # it takes two seconds
        part = locales / "part"
        try:
            call(["localedef", "-i", "tr_TR", "-f", "UTF-8", part], folder / "setup.log")
        except Failed as error:
            raise Skipped(f"no locale {name}: {error} (package locales)") from error
        part.rename(locales / name)
    variables = {"LOCPATH": str(locales), "LC_ALL": name}
    point = probe(run, "import locale; locale.setlocale(locale.LC_ALL, '');"
                       "print(locale.localeconv()['decimal_point'])", variables)
    if point != ",":
        raise Failed(f"{name} is not in effect: its decimal point is '{point}'")
    return variables


def auckland(_run, _folder):
    return {"TZ": "Pacific/Auckland"}


def under(variables):
    return lambda run, folder: suite(run, folder, run.build, variables(run, folder))


def umask(run, folder):
    return suite(run, folder, run.build, umask=PRIVATE)


def at_once(run, folder):
    """One pass of the tests under all of the above; the row of each tells which one a failure has."""
    variables, left_out = {}, []
    for part in (turkish, auckland, other_libm):
        try:
            variables |= part(run, folder)
        except Skipped as why:
            left_out.append(str(why))
    said = suite(run, folder, run.build, variables, umask=PRIVATE)
    return "; ".join([said, *left_out])


def root(run, folder):
    if os.geteuid() != 0:
        raise Skipped("this is not root")
    return suite(run, folder, run.build)


def spaces(run, folder):
    build = cloned(run, folder)
    return suite(run, folder, build, {"TMPDIR": str(folder_beside(run.clone, "scratch"))})


def folder_beside(clone, name):
    folder = clone.parent / name
    folder.mkdir(exist_ok=True)
    return folder


def ordinary_user(run, folder):
    if os.geteuid() != 0:
        return suite(run, folder, run.build)
    build = cloned(run, folder)
    call(["chown", "-R", f"{NOBODY}:{NOBODY}", run.clone])
    home = folder_beside(run.clone, "home")
    logs = home / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    os.chown(home, NOBODY, NOBODY)
    # The folder for logs may lie where only root can enter.
    try:
        return suite(run, logs, build, {"HOME": str(home), "TMPDIR": str(home), "USER": "nobody"},
                     user=NOBODY, group=NOBODY, extra_groups=[], cwd=run.clone)
    finally:
        shutil.copytree(logs, folder, dirs_exist_ok=True)


def cloned(run, folder):
    """The build folder of a fresh clone whose path has a space; built at the first call."""
    if run.clone is None:
        top = pathlib.Path(run.scratch.enter_context(tempfile.TemporaryDirectory()))
        top.chmod(0o755)
        run.clone = top / "a b" / "warpledger"
        run.clone.parent.mkdir()
        log = folder / "build.log"
        log.unlink(missing_ok=True)
        call(["git", "clone", "--quiet", "--no-hardlinks", ROOT, run.clone], log)
        call(["bash", "-c", 'set -e; source cmake/setup.sh; mkdir -p build; install_venv "$PWD"'], log,
             cwd=run.clone)
        configure(run, run.clone, run.clone / "build", log,
                  *([] if run.with_cuda else ["-DWARPLEDGER_CUDA=OFF"]),
                  f"-DWARPLEDGER_PYTHON={run.clone}/build/venv/bin/python")
    if not (run.clone / "build/bin/warpledger").exists():
        raise Failed("the clone has no build; the row `spaces` says why")
    return run.clone / "build"


def configure(run, source, build, log, *options, targets=()):
    call(["cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options],
         log)
    call(["cmake", "--build", build, "-j", run.jobs,
          *(["--target", *targets] if targets else [])], log)


# --- Bytes of summaries --------------------------------------------------------------


def records(run):
    sys.path.insert(0, str(ROOT / "reports"))
    import record_files
    runs = record_files.runs(ROOT / "reports/data")
    chosen = (runs.values() if run.all_records
              else [found[-1:] for (_, design, _), found in sorted(runs.items()) if design in HANDFUL])
    return [record for found in chosen for record in found]


def same_summaries(run, folder, program, **variables):
    """What the program makes under these variables of the environment, and what this build does."""
    of = records(run)
    import summaries
    for name in ("this_build", "other"):  # each computes its own anew
        shutil.rmtree(folder / name, ignore_errors=True)
    try:
        want = summaries.hashes(run.build / "bin/warpledger", of, folder / "this_build")
        got = summaries.hashes(program, of, folder / "other", **variables)
    except subprocess.SubprocessError as error:
        raise Failed(f"{error} {error.stderr or ''}".strip()) from error
    if not want:
        raise Failed("there is no record to judge")
    differ = [name for name, digest in want.items() if got[name] != digest]
    if differ:
        raise Failed(f"{len(differ)} of {len(want)} summaries differ: {', '.join(differ)} ({folder})")
    return f"{len(want)} summaries are the same bytes"


def built_with(compiler, flags):
    def row(run, folder):
        found = shutil.which(compiler)
        if not found:
            raise Skipped(f"there is no {compiler}")
        if "v3" in flags and not {"AVX2", "FMA3"} <= set(probe(run, _FEATURES).split()):
            raise Skipped("this processor lacks AVX2 or FMA")
        log = folder / "build.log"
        log.unlink(missing_ok=True)
        configure(run, ROOT, folder / "build", log, f"-DCMAKE_CXX_COMPILER={found}",
                  f"-DCMAKE_CXX_FLAGS={flags}", "-DWARPLEDGER_CUDA=OFF", "-DWARPLEDGER_TESTS=OFF",
                  f"-DWARPLEDGER_PYTHON={run.python}", targets=["warpledger"])
        return same_summaries(run, folder, folder / "build/bin/warpledger")

    return row


def libm_summaries(run, folder):
    return same_summaries(run, folder, run.build / "bin/warpledger", **other_libm(run, folder))


# name: (what it changes, its function, whether --cheap has it)
ROWS = {
    "root": ("nothing; runs as root", root, False),
    "turkish": ("LC_ALL=tr_TR.UTF-8: decimal commas, a dotless i", under(turkish), False),
    "time_zone": ("TZ=Pacific/Auckland", under(auckland), False),
    "umask": ("umask 077", umask, False),
    "libm": ("glibc without its variants for AVX2 and FMA", under(other_libm), False),
    "at_once": ("the four rows before this one, together", at_once, True),
    "blas_skylakex": ("OpenBLAS as on SkylakeX", with_blas("SkylakeX", ["AVX512_SKX"]), False),
    "blas_haswell": ("OpenBLAS as on Haswell", with_blas("Haswell", ["AVX2", "FMA3"]), False),
    "blas_sandybridge": ("OpenBLAS as on Sandybridge", with_blas("Sandybridge", ["AVX"]), False),
    "blas_prescott": ("OpenBLAS as on Prescott", with_blas("Prescott", ["SSE3"]), False),
    "numpy_no_avx512": ("NumPy without AVX-512", without_numpy_features("AVX512.*"), False),
    "numpy_no_avx2": ("NumPy without AVX-512, AVX2 and FMA3",
                      without_numpy_features("AVX512.*|AVX2|FMA3"), False),
    "spaces": ("a fresh clone whose path has a space, and so has TMPDIR's", spaces, False),
    "ordinary_user": ("runs as an ordinary user (of that clone, where this is root)", ordinary_user,
                      False),
    "summaries_libm": ("summaries by glibc without AVX2 and FMA", libm_summaries, False),
    "summaries_clang": ("summaries by a build with clang", built_with("clang++", ""), False),
    "summaries_fma": ("summaries by a build for x86-64-v3, which has FMA",
                      built_with("g++", "-march=x86-64-v3"), False),
}


def run_row(run, name):
    """(result, what it says)"""
    folder = run.work / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ctest.log").unlink(missing_ok=True)
    try:
        return "passed", ROWS[name][1](run, folder)
    except Skipped as why:
        return "skipped", str(why)
    except Failed as why:
        return "FAILED", str(why)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build",
                        help="the build to test (default: build)")
    parser.add_argument("--work", type=pathlib.Path,
                        help="where logs and builds go (default: BUILD/environments)")
    parser.add_argument("--only", action="append", default=[], metavar="ROW",
                        help="this row alone; may be repeated")
    parser.add_argument("--cheap", action="store_true",
                        help="the cheap row, and the tests alone that an environment can change")
    parser.add_argument("--jobs", "-j", type=int, default=os.cpu_count(),
                        help="tests at once (default: the number of processors)")
    parser.add_argument("--all_records", action="store_true",
                        help="compare the summaries of every record (default: of a few designs)")
    parser.add_argument("--with_cuda", action="store_true",
                        help="build the clone with its kernels too, which takes long")
    parser.add_argument("--list", action="store_true", help="the rows, and no more")
    arguments = parser.parse_args()
    if arguments.list:
        for name, (what, _, cheap) in ROWS.items():
            print(f"{name:17} {what}{' (cheap)' if cheap else ''}")
        return 0
    if unknown := set(arguments.only) - set(ROWS):
        parser.error(f"no row is named {', '.join(sorted(unknown))}; --list has their names")
    build = arguments.build.resolve()
    if not (build / "CTestTestfile.cmake").exists():
        parser.error(f"{build} holds no build with tests; ./test makes one in build/")
    names = arguments.only or [name for name, row in ROWS.items() if row[2] or not arguments.cheap]
    run = Run(build=build, work=(arguments.work or build / "environments").resolve(),
              jobs=arguments.jobs, cheap=arguments.cheap, all_records=arguments.all_records,
              with_cuda=arguments.with_cuda)
    table = []
    with run.scratch:
        for number, name in enumerate(names, 1):
            print(f"[{number}/{len(names)}] {name}: {ROWS[name][0]} ...", flush=True)
            start = time.monotonic()
            result, said = run_row(run, name)
            table.append((name, result, time.monotonic() - start, said))
            print(f"    {result} in {table[-1][2]:.0f} s: {said}", flush=True)
    print(f"\n{'row':17} {'result':8} {'time':>6}")
    for name, result, seconds, said in table:
        print(f"{name:17} {result:8} {seconds:4.0f} s  {said}")
    results = {result for _, result, _, _ in table}
    if "FAILED" in results:
        return 1
    if results == {"skipped"}:
        print("SKIPPED: this machine can run none of these rows")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
