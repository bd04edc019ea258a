# SPDX-License-Identifier: Apache-2.0
"""cmake/setup.sh: what it finds missing, how it installs, and what it says when it can't."""

import subprocess

from fixture import ROOT, FolderTest

LIBRARIES = ["libabsl-dev", "libgtest-dev", "libgmock-dev", "libbenchmark-dev", "libbenchmark-tools",
             "nlohmann-json3-dev", "libzstd-dev", "libmd-dev", "libtomlplusplus-dev"]
PROGRAMS = ["g++", "cmake", "ninja", "git"]


class Setup(FolderTest):
    def setUp(self):
        super().setUp()
        self.bin = self.path / "bin"
        self.bin.mkdir()
        # A machine of our own making: only these programs exist on PATH.
        for name in ("bash", "cat", "sort", "head", "mkdir", "nproc", "env"):
            (self.bin / name).symlink_to(f"/usr/bin/{name}")
        for name in PROGRAMS:
            self.fake(name, "exit 0")
        self.installed(LIBRARIES)

    def fake(self, name, body):
        self.write(f"bin/{name}", f"#!/bin/bash\n{body}\n", mode=0o755)

    def installed(self, packages):
        """A dpkg-query that knows `packages` and remembers one removed package."""
        self.fake("dpkg-query", 'case ${!#} in\n'
                  + "".join(f"  {name}) printf installed ;;\n" for name in packages)
                  + "  *) printf config-files ;;\nesac")

    def bash(self, code, **environment):
        return subprocess.run(
            ["/bin/bash", "-c", f'set -euo pipefail; source "{ROOT}/cmake/setup.sh"; {code}'],
            capture_output=True, text=True, check=False,
            env={"PATH": str(self.bin), "HOME": str(self.path), **environment})

    def missing(self):
        result = self.ends(self.bash("system_python() { true; }; missing_packages"))
        return result.stdout.split()

    def test_finds_nothing_missing_on_a_complete_machine(self):
        self.assertEqual(self.missing(), [])

    def test_names_each_missing_program_by_its_package(self):
        for name in ("ninja", "cmake"):
            (self.bin / name).unlink()
        self.assertEqual(self.missing(), ["cmake", "ninja-build"])

    def test_a_build_that_only_replays_needs_no_library_of_the_tests(self):
        self.installed(LIBRARIES[:1])
        result = self.bash("system_python() { true; }; missing_packages replay")
        self.assertEqual(result.stdout.split(),
                         ["nlohmann-json3-dev", "libzstd-dev", "libmd-dev", "libtomlplusplus-dev"])

    def test_counts_a_removed_library_as_missing(self):
        self.installed(LIBRARIES[1:])
        self.assertEqual(self.missing(), ["libabsl-dev"])

    def test_asks_for_python_where_none_can_make_an_environment(self):
        result = self.bash("system_python() { false; }; missing_packages")
        self.assertEqual(result.stdout.split(), ["python3", "python3-venv"])

    def test_touches_apt_only_when_something_is_missing(self):
        self.fake("apt-get", f'echo "$*" >>"{self.path}/apt.log"')
        code = "system_python() { true; }; install_system_packages"
        self.assertEqual(self.bash(code, EUID_FOR_TEST="0").returncode, 0)
        self.assertFalse((self.path / "apt.log").exists())

        self.installed(LIBRARIES[1:])
        self.assertEqual(self.bash(code, EUID_FOR_TEST="0").returncode, 0)
        log = (self.path / "apt.log").read_text(encoding="utf-8").splitlines()
        self.assertEqual(log[0], "-qq update")
        self.assertEqual(log[1].split()[-1], "libabsl-dev")

    def test_says_what_to_install_where_it_is_not_root(self):
        for why, sudo in {"no sudo": None, "sudo wants a password": "exit 1"}.items():
            with self.subTest(why):
                if sudo:
                    self.fake("sudo", sudo)
                result = self.bash("install_packages libabsl-dev ninja-build", EUID_FOR_TEST="1000")
                self.assertEqual(result.returncode, 3)
                self.assertIn("apt-get install --no-install-recommends libabsl-dev ninja-build",
                              result.stderr)

    def test_uses_sudo_that_needs_no_password(self):
        self.fake("sudo", f'echo "$*" >>"{self.path}/sudo.log"')
        self.ends(self.bash("install_packages libabsl-dev", EUID_FOR_TEST="1000"))
        log = (self.path / "sudo.log").read_text(encoding="utf-8")
        self.assertIn("-n apt-get -qq update", log)
        self.assertIn("libabsl-dev", log.splitlines()[-1])

    def test_fails_when_apt_fails(self):
        self.fake("apt-get", '[[ $* == *update* ]]')
        result = self.bash("install_packages libabsl-dev", EUID_FOR_TEST="0")
        self.assertNotEqual(result.returncode, 0)

    def test_goes_on_without_a_program_that_only_a_test_wants(self):
        for said, result in (("Installing: chromium", "exit 0"), ("Going on without chromium", "exit 100")):
            self.fake("apt-get", result)
            done = self.bash("install_wanted chromium ninja", EUID_FOR_TEST="0")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(said, done.stdout + done.stderr)
            self.assertNotIn("ninja", done.stdout + done.stderr)

    def test_names_missing_programs_where_there_is_no_apt(self):
        (self.bin / "dpkg-query").unlink()
        (self.bin / "cmake").unlink()
        self.ends(self.bash("install_system_packages"), 3, err="cmake")

    def test_compares_versions_by_number(self):
        for have, want, enough in (("3.25.1", "3.25", True), ("3.31.6", "3.25", True),
                                   ("3.22.1", "3.25", False), ("4.0.0", "3.25", True),
                                   ("3.9.0", "3.25", False)):
            with self.subTest(have):
                code = f"version_at_least {have} {want} && echo yes || echo no"
                self.assertEqual(self.bash(code).stdout.strip(), "yes" if enough else "no")

    def test_estimates_a_long_step_from_the_last_time(self):
        (self.path / "build").write_text("95\n", encoding="utf-8")
        (self.path / "configure").write_text("3\n", encoding="utf-8")
        result = self.bash(f"TIMINGS_DIR='{self.path}'; step build Building; step configure Conf")
        self.assertIn("Building (about 95 s, as last time)", result.stdout)
        self.assertNotIn("about 3 s", result.stdout)


class Test(FolderTest):
    """./test as a program."""

    def run_script(self, *arguments):
        return self.call(ROOT / "test", *arguments, WARPLEDGER_SKIP_SETUP="1")

    def test_explains_itself(self):
        self.ends(self.run_script("--help"), out="--label")

    def test_refuses_an_unknown_argument_before_it_does_anything(self):
        for arguments, told in ((["--lable=cpu"], "unknown argument '--lable=cpu'"),
                                (["--preset="], "unknown argument '--preset='"),
                                (["--preset", "fast"], "unknown argument '--preset=fast'"),
                                (["--preset=none"], "unknown argument '--preset=none'"),
                                (["--label="], "unknown argument '--label='"),
                                (["--preset"], "--preset needs a name"),
                                (["--label"], "--label needs a name")):
            result = self.ends(self.run_script(*arguments), 2, err=told)
            self.assertEqual(result.stdout, "")
