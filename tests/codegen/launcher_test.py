# SPDX-License-Identifier: Apache-2.0
"""cmake/instance_launcher.sh, with a scripted compiler and, where there is one, with nvcc."""

import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from fixture import FolderTest, run

LAUNCHER = pathlib.Path(__file__).resolve().parents[2] / "cmake" / "instance_launcher.sh"

# Behaves as nvcc does for the launcher: -o, --keep-dir and a report on stderr.
FAKE_NVCC = """#!/usr/bin/env bash
printf '%s\\n' "$@" >"$FAKE_ARGS"
while (($#)); do
  case "$1" in
    -o) object="$2" ;;
    --keep-dir) keep="$2" ;;
  esac
  shift
done
cat "$FAKE_REPORT" >&2
[[ -z "${FAKE_SLEEP-}" ]] || { touch "$FAKE_ARGS.started"; sleep "$FAKE_SLEEP"; }
if [[ -n "${keep-}" ]]; then
  for suffix in compute_90.ptx compute_90.cubin cudafe1.gpu fatbin; do
    echo "$suffix" >"$keep/x.$suffix"
  done
fi
[[ -z "${object-}" ]] || echo object >"$object"
exit "${FAKE_STATUS:-0}"
"""


def report(spills="0 bytes spill stores, 0 bytes spill loads", extra=""):
    return (f"{extra}ptxas info    : 0 bytes gmem\n"
            "ptxas info    : Compiling entry function '_Z1xv' for 'sm_90'\n"
            "ptxas info    : Function properties for _Z1xv\n"
            f"    8 bytes stack frame, {spills}\n"
            "ptxas info    : Used 14 registers, used 1 barriers, 256 bytes smem\n"
            "ptxas info    : Compile time = 3.013 ms\n")


class LauncherTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.folder = self.path / "a folder"
        self.folder.mkdir()
        self.object = self.folder / "x.cu.o"
        self.keep = self.folder / "x.cu.o.keep"
        self.waivers = self.folder / "waivers.txt"
        self.write("a folder/nvcc", FAKE_NVCC, 0o755)

    def environment(self, text, **variables):
        (self.folder / "report").write_text(text, encoding="utf-8")
        return {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}",
                "FAKE_REPORT": str(self.folder / "report"),
                "FAKE_ARGS": str(self.folder / "args"), **variables}

    def command(self, *extra):
        return [LAUNCHER, "--waivers", self.waivers, "nvcc", "-O3", *extra, "-x", "cu", "-c",
                self.folder / "x.cu", "-o", self.object]

    def launch(self, text, *extra, **variables):
        return run(*self.command(*extra), env=self.environment(text, **variables))

    def left(self):
        return sorted(path.name for path in self.folder.glob("x.cu.o*"))

    def test_a_clean_compile_keeps_log_ptx_and_cubin_and_nothing_else(self):
        done = self.launch(report())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.left(), ["x.cu.o", "x.cu.o.keep"])
        self.assertEqual(sorted(path.name for path in self.keep.iterdir()),
                         ["ptxas.log", "x.compute_90.cubin", "x.compute_90.ptx"])
        self.assertEqual((self.keep / "ptxas.log").read_text(encoding="utf-8"), report())

    def test_the_compiler_gets_its_arguments_unchanged_but_for_the_object(self):
        self.launch(report(), "-DTEXT=two words", "-MD", "-MT", "t", "-MF", "f.d")
        arguments = (self.folder / "args").read_text(encoding="utf-8").splitlines()
        self.assertEqual(arguments, [
            "-O3", "-DTEXT=two words", "-MD", "-MT", "t", "-MF", "f.d", "-x", "cu", "-c",
            f"{self.folder}/x.cu", "-o", f"{self.object}.part", "-Xptxas=-v", "--keep",
            "--keep-dir", f"{self.keep}.part"])

    def test_a_dependency_file_without_a_target_names_the_real_object(self):
        self.launch(report(), "-MD", "-MF", "f.d")
        arguments = (self.folder / "args").read_text(encoding="utf-8").splitlines()
        self.assertEqual(arguments[arguments.index("-MT") + 1], str(self.object))

    def test_warnings_and_advisories_are_shown_without_the_verbose_report(self):
        for line in ("x.cu(3): warning #177-D: variable was declared but never referenced\n",
                     "ptxas info    : (C7516) something else\n"):
            done = self.launch(report(extra=line))
            self.assertEqual((done.returncode, done.stderr), (0, line))

    def test_the_exit_status_and_message_of_a_failing_compiler_are_passed_on(self):
        error = "x.cu(3): error: expected a ';'\n"
        done = self.launch(error, FAKE_STATUS="17")
        self.assertEqual((done.returncode, done.stderr), (17, error))
        self.assertEqual(self.left(), [])

    def test_spills_fail_the_compile(self):
        for spills in ("4 bytes spill stores, 0 bytes spill loads",
                       "0 bytes spill stores, 120 bytes spill loads"):
            with self.subTest(spills=spills):
                self.ends(self.launch(report(spills)), 3, err=(spills, "_Z1xv for sm_90:"))
                self.assertEqual(self.left(), [])

    def test_spills_are_let_through_where_a_waiver_gives_a_reason(self):
        spilling = report("4 bytes spill stores, 4 bytes spill loads")
        for line, status in (("x measured faster", 0), ("_Z1xv measured faster", 0), ("x", 3),
                             ("# x measured faster", 3), ("xy measured faster", 3)):
            with self.subTest(line=line):
                self.waivers.write_text(f"# name, reason\n\n{line}\n", encoding="utf-8")
                self.assertEqual(self.launch(spilling).returncode, status)

    def test_serialised_wgmma_fails_the_compile_and_no_waiver_helps(self):
        self.waivers.write_text("x reason\n", encoding="utf-8")
        for code in ("C7511", "C7513", "C7515", "C7517", "C7519"):
            for kind in ("ptxas info    :", "ptxas warning :"):
                with self.subTest(code=code, kind=kind):
                    line = f"{kind} ({code}) Potential Performance Loss: wgmma serialised\n"
                    self.ends(self.launch(report(extra=line)), 3, err=code)
                    self.assertEqual(self.left(), [])

    def test_a_report_without_a_kernel_fails(self):
        self.ends(self.launch(""), 3, err="reported no kernel")

    def test_a_refused_compile_leaves_the_last_good_pair_alone(self):
        self.launch(report())
        self.launch(report("4 bytes spill stores, 4 bytes spill loads"))
        self.assertEqual(self.left(), ["x.cu.o", "x.cu.o.keep"])
        self.assertEqual((self.keep / "ptxas.log").read_text(encoding="utf-8"), report())

    def test_what_a_killed_run_left_is_replaced(self):
        (self.folder / "x.cu.o.keep.part").mkdir()
        (self.folder / "x.cu.o.keep.part" / "stale.ptx").touch()
        (self.folder / "x.cu.o.part").touch()
        self.assertEqual(self.launch(report()).returncode, 0)
        self.assertEqual(self.left(), ["x.cu.o", "x.cu.o.keep"])
        self.assertFalse((self.keep / "stale.ptx").exists())

    def test_a_terminated_run_leaves_nothing(self):
        with subprocess.Popen(self.command(), env=self.environment(report(), FAKE_SLEEP="60"),
                              stderr=subprocess.DEVNULL, start_new_session=True) as process:
            deadline = time.monotonic() + 30
            while not (self.folder / "args.started").exists():
                self.assertLess(time.monotonic(), deadline, "the compiler never started")
                time.sleep(0.01)
            # As a terminal or ninja does: the whole process group.
            os.killpg(process.pid, signal.SIGTERM)
            self.assertNotEqual(process.wait(30), 0)
        self.assertEqual(self.left(), [])

    def test_calls_that_compile_nothing_go_straight_to_the_compiler(self):
        done = run(LAUNCHER, "nvcc", "--version", env=self.environment("version\n"))
        self.assertEqual((done.returncode, done.stderr), (0, "version\n"))
        self.assertEqual((self.folder / "args").read_text(encoding="utf-8"), "--version\n")

    def test_a_call_without_a_compiler_says_how_to_call_it(self):
        self.ends(run(LAUNCHER), 2, err="no compiler given")


@unittest.skipUnless(shutil.which("nvcc"), "no nvcc on PATH")
class NvccTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.folder = self.write("a folder/x.cu", "").parent
        self.object = self.folder / "x.cu.o"

    def launch(self, source, *extra, mode="-c"):
        (self.folder / "x.cu").write_text(source, encoding="utf-8")
        return subprocess.run(
            [LAUNCHER, "nvcc", "--generate-code=arch=compute_80,code=[sm_80]",
             "--generate-code=arch=compute_90,code=[sm_90]", *extra, "-MD", "-MT", "x.cu.o", "-MF",
             self.folder / "x.cu.o.d", "-x", "cu", mode, self.folder / "x.cu", "-o", self.object],
            capture_output=True, text=True, check=False)

    def test_one_compile_leaves_object_dependencies_ptx_and_cubins(self):
        done = self.launch("__global__ void x(float* p) { p[threadIdx.x] *= 2; }\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        kept = sorted(path.name for path in (self.folder / "x.cu.o.keep").iterdir())
        self.assertEqual(kept, ["ptxas.log", "x.compute_80.cubin", "x.compute_80.ptx",
                                "x.compute_90.cubin", "x.compute_90.ptx"])
        self.assertEqual(self.object.read_bytes()[:4], b"\x7fELF")
        self.assertRegex((self.folder / "x.cu.o.d").read_text(encoding="utf-8"), r"^x\.cu\.o *:")
        self.assertFalse(list(self.folder.glob("*.part")))

    def test_a_compile_for_the_device_alone_leaves_the_same_and_a_fat_binary(self):
        source = "__global__ void x(float* p) { p[threadIdx.x] *= 2; }\n"
        self.assertEqual(self.launch(source).returncode, 0)
        both = {path.name: path.read_bytes() for path in (self.folder / "x.cu.o.keep").iterdir()}
        done = self.launch(source, mode="-fatbin")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        alone = {path.name: path.read_bytes() for path in (self.folder / "x.cu.o.keep").iterdir()}
        self.assertEqual(set(alone), set(both))
        for name in both:
            if name.endswith(".ptx"):
                self.assertEqual(alone[name], both[name])
        self.assertEqual(self.object.read_bytes()[:4], b"\x50\xed\x55\xba")  # fatbinary's magic
        self.assertRegex((self.folder / "x.cu.o.d").read_text(encoding="utf-8"), r"^x\.cu\.o *:")

    def test_a_kernel_that_really_spills_fails(self):
        done = self.launch("""
            __global__ void x(float* p, int n) {
              float live[64];
            #pragma unroll
              for (int i = 0; i < 64; ++i) live[i] = p[i * n];
              __syncthreads();
            #pragma unroll
              for (int i = 0; i < 64; ++i) p[i * n + 1] = live[63 - i] * live[i];
            }
            """, "--maxrregcount=24")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("registers spilled", done.stderr)
        self.assertFalse(self.object.exists())
