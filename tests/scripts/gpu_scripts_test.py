"""tests/sanitizers.sh and tests/gpu_tests.sh notice what they are there to notice.

Stand-ins take the place of compute-sanitizer and of the GPU tests.
"""

import os
import pathlib
import stat
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/usr/bin/env bash\n" + text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)


class GpuScriptsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def call(self, name, *arguments, **environment):
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run([str(ROOT / "tests" / name), *map(str, arguments)],
                              capture_output=True, text=True, timeout=60, check=False,
                              env=os.environ | {"PATH": path} | environment)

    def sanitize(self, says):
        """What the script makes of a tool that `says` this of racecheck on ragged_1x1."""
        script(self.folder / "compute-sanitizer", f"""
[[ "$*" == *racecheck*shapes=ragged_1x1* ]] && {{ {says}; }}
echo '========= ERROR SUMMARY: 0 errors'
""")
        return self.call("sanitizers.sh", "/bin/true", "--shapes", "small,ragged_1x1", "--jobs", 2)

    def test_clean_is_every_tool_on_every_shape(self):
        done = self.sanitize("true")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count(": clean, "), 8)

    def test_a_warning_that_leaves_the_exit_code_alone_is_a_finding(self):
        done = self.sanitize("echo 'RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)'; "
                             "exit 0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("racecheck on ragged_1x1: FOUND", done.stdout)
        self.assertEqual(done.stdout.count(": clean, "), 7)

    def test_so_is_an_exit_code_and_a_summary_that_is_not_there(self):
        self.assertEqual(self.sanitize("echo 'ERROR SUMMARY: 0 errors'; exit 9").returncode, 1)
        self.assertEqual(self.sanitize("exit 0").returncode, 1)

    def gpu_tests(self, failing_shard):
        tests = self.folder / "prefix" / "share" / "warpledger" / "gpu_tests"
        script(tests / "forward_gpu_test", f"""
echo "shard $GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS"
[[ $GTEST_SHARD_INDEX != {failing_shard} ]]
""")
        script(tests / "other_gpu_test", "exit 0\n")
        script(self.folder / "python", "exit 0\n")
        return self.call("gpu_tests.sh", self.folder / "prefix", self.folder / "python",
                         GPU_TEST_SHARDS="3")

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


if __name__ == "__main__":
    unittest.main()
