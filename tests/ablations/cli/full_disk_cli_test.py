# SPDX-License-Identifier: Apache-2.0
"""What commands say where standard output is full."""

import pathlib

from cli_fixture import RecordTest
from fixture import HAS_KERNELS, PROGRAM


class FullDisk(RecordTest):
    """Whoever reads what a command printed must not take the half of it for the whole."""

    def test_fails_every_command_that_prints(self):
        calls = [["--help"], ["--version"], ["help", "run"], ["list"], ["list", "--format=json"],
                 ["run", "--dry_run"], ["judge", "--record=record"],
                 ["report", "--record=record", "--out=out", "--noplots"],
                 ["techniques", "--record=record", "--out=out"],
                 ["standings", "--record=record", "--out=out", "--noplots"],
                 ["compare", "--a=record", "--b=record"],
                 ["compare", "--a=record", "--b=record", "--format=json"],
                 ["gate", "--record=record", "--baseline=record"],
                 ["bundle", "--record=record", "--out=out/bundle.tar.gz"],
                 ["dtypes", "--out=out", "--max_seq=64"], ["pack", "record", "--keep"],
                 ["unpack", "record.tar.zst", "--out=unpacked"]]
        if HAS_KERNELS:
            resources = pathlib.Path(PROGRAM).parents[1] / "codegen/resources.json"
            calls += [["check", "--dry_run"], ["ratchet", f"--baseline={resources}"]]
        for arguments in calls:
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                done = self.run_program(*arguments, stdout=full)
                self.assertIn("standard output can't be written to its end", done.stderr)
                self.assertEqual(done.returncode, 3 if arguments[0] in ("gate", "ratchet") else 5)
