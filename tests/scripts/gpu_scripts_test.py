"""tests/sanitizers.py and tests/gpu_tests.sh notice what they are there to notice.

Stand-ins take the place of compute-sanitizer, of the program under it and of the GPU tests.
"""

import importlib.util
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/usr/bin/env bash\n" + text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def call(self, *command, **environment):
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60,
                              check=False, env=os.environ | {"PATH": path} | environment)


class GpuTestsTest(ScriptTest):
    def gpu_tests(self, failing_shard):
        tests = self.folder / "prefix" / "share" / "warpledger" / "gpu_tests"
        script(tests / "forward_gpu_test", f"""
echo "shard $GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS"
[[ $GTEST_SHARD_INDEX != {failing_shard} ]]
""")
        script(tests / "other_gpu_test", "exit 0\n")
        script(self.folder / "python", "exit 0\n")
        return self.call(ROOT / "tests" / "gpu_tests.sh", self.folder / "prefix",
                         self.folder / "python", GPU_TEST_SHARDS="3")

    def test_all_parts_of_the_long_test_run(self):
        done = self.gpu_tests("none")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for shard in range(3):
            self.assertIn(f"shard {shard} of 3", done.stdout)
        self.assertIn("5 passed, 0 failed", done.stdout)

    def test_one_part_that_fails_fails_it(self):
        done = self.gpu_tests("1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: forward_gpu_test", done.stdout)
        self.assertIn("4 passed, 1 failed", done.stdout)


PROGRAM = """
if [[ $1 == list ]]; then
  echo '{"shapes": ['
  for shape in small ragged large; do
    echo "{\\"name\\": \\"$shape\\", \\"batch\\": 1, \\"heads_q\\": 1, \\"seq_q\\": 32,"
    [[ $shape == large ]] && seq_kv=9999999 || seq_kv=32
    echo "\\"seq_kv\\": $seq_kv, \\"head_dim\\": 64}$([[ $shape == large ]] || echo ,)"
  done
  echo ']}'
  exit
fi
for flag; do
  case $flag in
    --out=*) out=${flag#--out=} ;;
    --shape=* | --shapes=*) shape=${flag#*=} ;;
    --shard=*) part=${flag#--shard=} ;;
  esac
done
echo "{\\"instance\\": \\"$shape-${part%/*}\\", \\"code_sha256\\": \\"code of $shape\\"}" >>"$out"
"""


class SanitizersTest(ScriptTest):
    """The program holds an instance for each shape and part."""

    def sanitize(self, says="true", *arguments):
        """What becomes of a tool that `says` this of racecheck on the first part of `ragged`."""
        script(self.folder / "nvidia-smi", "echo '0, GPU-1, NVIDIA H200, 9.0, 580.1'\n")
        script(self.folder / "program", PROGRAM)
        script(self.folder / "compute-sanitizer", f"""
[[ $1 == --version ]] && {{ echo "Version 2025.3"; exit; }}
echo "$@" >>{self.folder}/calls
[[ "$*" == *racecheck*shapes=ragged*shard=1/2* ]] && {{ {says}; }}
shift 6
"$@"
echo '========= ERROR SUMMARY: 0 errors'
""")
        return self.call(sys.executable, ROOT / "tests" / "sanitizers.py", "run",
                         self.folder / "program", "--parts=2", "--jobs=2", *arguments)

    def record(self):
        return json.loads((self.folder / "out" / "sanitizers.json").read_text(encoding="utf-8"))

    def test_clean_is_every_tool_on_every_part_of_every_small_shape(self):
        done = self.sanitize("true", "--out", self.folder / "out")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count(": clean, 1 instances"), 16)
        record = self.record()
        self.assertEqual(record["instances"], {f"{shape}-{part}": f"code of {shape}"
                                               for shape in ("ragged", "small")
                                               for part in (1, 2)})
        self.assertEqual([(run["tool"], run["shape"]) for run in record["runs"]],
                         [(tool, shape) for tool in ("memcheck", "racecheck", "initcheck",
                                                     "synccheck")
                          for shape in ("small", "ragged")])
        for run in record["runs"]:
            self.assertEqual((run["instances"], run["findings"]),
                             ([2, 3] if run["shape"] == "small" else [0, 1], []))
        self.assertEqual(record["gpu"], {"name": "NVIDIA H200", "compute_capability": "9.0",
                                         "driver": "580.1"})

    def test_a_warning_that_leaves_the_exit_code_alone_is_a_finding(self):
        done = self.sanitize("echo '========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 "
                             "warning)'; exit 0", "--out", self.folder / "out")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("racecheck on ragged, part 1: FOUND", done.stdout)
        self.assertEqual(done.stdout.count(": clean, "), 15)
        found = [run for run in self.record()["runs"] if run["findings"]]
        self.assertEqual([(run["tool"], run["shape"]) for run in found], [("racecheck", "ragged")])
        self.assertIn("1 hazard displayed", found[0]["findings"][1])
        again = self.sanitize("true", "--out", self.folder / "out")
        self.assertEqual((again.returncode, again.stdout.count("with findings")), (1, 1))

    def test_so_is_an_exit_code_and_a_summary_that_is_not_there(self):
        self.assertEqual(self.sanitize("echo 'ERROR SUMMARY: 0 errors'; exit 9").returncode, 1)
        self.assertEqual(self.sanitize("exit 0").returncode, 1)

    def test_the_same_call_goes_on_after_a_kill(self):
        killed = self.sanitize("kill -KILL $(cut -d' ' -f4 /proc/$PPID/stat); exit",
                               "--out", self.folder / "out")
        self.assertEqual(killed.returncode, -9)
        self.assertFalse((self.folder / "out" / "sanitizers.json").exists())
        before = len((self.folder / "calls").read_text(encoding="utf-8").splitlines())
        done = self.sanitize("true", "--out", self.folder / "out")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        after = len((self.folder / "calls").read_text(encoding="utf-8").splitlines())
        self.assertIn("processes were clean already", done.stdout)
        self.assertLess(after - before, 16)
        self.assertEqual(len(self.record()["instances"]), 4)

    def test_what_another_call_began_is_refused(self):
        self.sanitize("kill -KILL $(cut -d' ' -f4 /proc/$PPID/stat); exit",
                      "--out", self.folder / "out")
        done = self.sanitize("true", "--out", self.folder / "out", "--parts=3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("holds the beginning of another run", done.stderr)

        script(self.folder / "other", PROGRAM.replace("code of", "other code of"))
        done = self.call(sys.executable, ROOT / "tests" / "sanitizers.py", "run",
                         self.folder / "other", "--parts=2", "--jobs=2", "--out",
                         self.folder / "out")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("was another kernel in an earlier call", done.stderr)

    def test_wrong_use_has_one_line(self):
        for arguments, said in ((["--tools=racechek"], "no tool 'racechek'"),
                                (["--shapes=smal"], "no shape 'smal'")):
            done = self.sanitize("true", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        done = self.call(sys.executable, ROOT / "tests" / "sanitizers.py", "run",
                         self.folder / "not_built")
        self.assertEqual(done.returncode, 2)
        self.assertIn("Build it", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def page(self, change):
        """The page of a clean record of all instances of this tree, after `change` of it."""
        path = ROOT / "tests" / "sanitizers.py"
        spec = importlib.util.spec_from_file_location("sanitizers", path)
        sanitizers = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sanitizers)
        tree = sanitizers.instances_of_tree("9.0")
        every = list(range(len(tree)))
        record = {"run_id": "r", "compute_sanitizer": "1", "instances": dict(tree),
                  "gpu": {"name": "NVIDIA H200", "compute_capability": "9.0", "driver": "1"},
                  "runs": [{"tool": tool, "shape": "small", "instances": every, "findings": []}
                           for tool in sanitizers.TOOLS]}
        change(record)
        (self.folder / "sanitizers.json").write_text(json.dumps(record), encoding="utf-8")
        done = self.call(sys.executable, ROOT / "tests" / "sanitizers.py", "report", self.folder,
                         "--out", self.folder)
        if done.returncode != 0:
            return done.stderr
        return (self.folder / "sanitizers.md").read_text(encoding="utf-8")

    def test_the_page_names_what_is_not_covered(self):
        def counts(page):
            return page.split("**")[1].split(" instances")[0]

        whole = self.page(lambda record: None)
        every = len(json.loads((self.folder / "sanitizers.json").read_text())["instances"])
        self.assertEqual(counts(whole), f"{every} of the {every}")
        self.assertNotIn("## Never run", whole)

        def forget(record):
            record["instances"]["gone"] = record["instances"].pop("kv_tiling")

        page = self.page(forget)
        self.assertEqual(counts(page), f"{every - 1} of the {every}")
        self.assertIn("## Never run\n\n- `kv_tiling`\n", page)
        self.assertIn("## Run, and no longer in this tree\n\n- `gone`\n", page)

        page = self.page(lambda record: record["instances"].update(kv_tiling="other"))
        self.assertEqual(counts(page), f"{every - 1} of the {every}")
        self.assertIn("## Machine code changed since\n\n- `kv_tiling`\n", page)

        page = self.page(lambda record: record["runs"][1]["findings"].append("a hazard"))
        self.assertEqual(counts(page), f"0 of the {every}")
        self.assertIn("racecheck on `small`:\n\n```\na hazard\n```", page)

        page = self.page(lambda record: record["runs"].pop())
        self.assertEqual(counts(page), f"0 of the {every}")
        self.assertIn("## Not clean under every tool", page)

    def test_a_damaged_record_has_one_line(self):
        self.assertIn("can't be read", self.page(lambda record: record.pop("runs")))


if __name__ == "__main__":
    unittest.main()
