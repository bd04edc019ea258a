# SPDX-License-Identifier: Apache-2.0
"""cmake/machine_code_file.py, on build folders made by hand."""

import json
import os

import machine_code_file
from fixture import FolderTest

INSTANCES = {("minimal_scalar", "sm_80"): "80", ("minimal_scalar", "sm_90"): "s",
             ("kv_tiling", "sm_90"): "t", ("wgmma", "sm_90a"): "w"}


class MachineCodeFileTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.file = self.path / "machine_code.json"

    def build(self, instances=None, nvcc="13.0.88", build_type="Release", archs="80-real;90-real",
              extra="", listed=None):
        """Makes a build folder of {(instance, architecture): hash}."""
        instances = INSTANCES if instances is None else instances
        build = self.path / "build"
        files = {
            "CMakeCache.txt": f"CMAKE_BUILD_TYPE:STRING={build_type}\n"
                              f"WARPLEDGER_CUDA_ARCHITECTURES:STRING={archs}\n"
                              f"WARPLEDGER_EXTRA_DESIGNS:STRING={extra}\n",
            "CMakeFiles/3.25/CMakeCUDACompiler.cmake":
                f'set(CMAKE_CUDA_COMPILER_VERSION "{nvcc}")\n' if nvcc else "",
            "generated/instances/x.fatbin.keep/ptxas.log": "",
            "generated/instances/instances.json": json.dumps({"instances": [
                {"variant": name} for name in listed or dict.fromkeys(n for n, _ in instances)]}),
            "codegen/codegen.json": json.dumps({"instances": [
                {"variant": name, "arch": arch, "code_sha256": code}
                for (name, arch), code in instances.items()]})}
        for name, text in files.items():
            self.write(f"build/{name}", text)
        os.utime(build / "generated/instances/x.fatbin.keep/ptxas.log", (0, 0))
        return build

    def call(self, *arguments):
        """Exit code and what was printed."""
        return self.run_main(machine_code_file.main, "--build", self.path / "build", "--file",
                             self.file, *arguments)

    def written(self, **build):
        self.build(**build)
        self.assertEqual(self.call("--write")[0], 0)

    def test_the_file_names_its_compiler_and_holds_a_line_per_instance_sorted(self):
        self.written()
        self.assertEqual(self.file.read_text(encoding="utf-8"),
                         '{\n "schema_version": 1,\n "nvcc": "13.0.88",\n "archs": {\n'
                         '  "sm_90": {\n   "kv_tiling": "t",\n   "minimal_scalar": "s"\n  },\n'
                         '  "sm_90a": {\n   "wgmma": "w"\n  }\n }\n}\n')

    def test_the_build_that_it_was_written_from_passes(self):
        self.written()
        code, said = self.call()
        self.assertEqual((code, said), (0, "3 instances as in machine_code.json\n"))

    def test_another_architecture_may_change(self):
        self.written()
        self.build({**INSTANCES, ("minimal_scalar", "sm_80"): "other"})
        self.assertEqual(self.call()[0], 0)

    def test_what_differs_is_named_with_the_way_to_renew_the_file(self):
        self.written()
        for instances, name, why in (
                ({**INSTANCES, ("wgmma", "sm_90a"): "other"}, "wgmma on sm_90a",
                 "other machine code"),
                ({**INSTANCES, ("new", "sm_90"): "n"}, "new on sm_90",
                 "built, but not in the file"),
                ({key: code for key, code in INSTANCES.items() if key[0] != "kv_tiling"},
                 "kv_tiling on sm_90", "in the file, but not built")):
            with self.subTest(name):
                self.build(instances)
                code, said = self.call()
                self.assertEqual(code, 1)
                self.assertIn(f"{name}: {why}", said)
                self.assertEqual(said.count(" on sm_"), 1)
                self.assertIn("machine_code_file.py --write", said)

    def test_ones_own_designs_may_add_instances_but_change_none(self):
        self.written()
        more = {**INSTANCES, ("new", "sm_90"): "n"}
        self.build(more, extra="sweep:d")
        self.assertEqual(self.call()[0], 0)
        self.assertEqual(self.call("--write")[0], 2)
        self.build({**more, ("wgmma", "sm_90a"): "other"}, extra="sweep:d")
        self.assertEqual(self.call()[0], 1)

    def test_a_build_that_says_nothing_of_the_file_is_skipped_with_the_reason(self):
        self.written()
        changed = {**INSTANCES, ("wgmma", "sm_90a"): "other"}
        for build, reason in (({"nvcc": "13.1.0"}, "nvcc 13.0.88, and this build is of 13.1.0"),
                              ({"build_type": "Debug"}, "this build is Debug"),
                              ({"archs": "89-real"}, "no sm_90")):
            with self.subTest(reason):
                self.build(changed, **build)
                code, said = self.call()
                self.assertEqual(code, 77)
                self.assertIn(reason, said)

    def test_another_compiler_s_build_renews_the_file(self):
        self.written()
        self.written(nvcc="13.1.0")
        self.assertIn('"nvcc": "13.1.0"', self.file.read_text(encoding="utf-8"))

    def test_neither_a_debug_build_nor_one_without_the_architecture_is_written(self):
        for build in {"build_type": "Debug"}, {"archs": "89-real"}:
            self.build(**build)
            self.assertEqual(self.call("--write")[0], 2)
        self.assertFalse(self.file.exists())

    def test_an_unfinished_build_is_an_error(self):
        self.written()
        codegen = self.build() / "codegen" / "codegen.json"
        os.utime(codegen, (0, 0))
        os.utime(self.path / "build/generated/instances/x.fatbin.keep/ptxas.log", (1, 1))
        code, said = self.call()
        self.assertEqual(code, 2)
        self.assertIn("finish the build", said)
        self.build(listed=["minimal_scalar"])
        self.assertEqual(self.call("--write")[0], 2)
        self.build(nvcc="")
        self.assertEqual(self.call()[0], 2)
        codegen.unlink()
        self.assertEqual(self.call()[0], 2)

    def test_a_missing_or_broken_file_fails(self):
        self.build()
        for text in None, "{", '{"nvcc": "13.0.88"}':
            if text is not None:
                self.file.write_text(text, encoding="utf-8")
            code, said = self.call()
            self.assertEqual(code, 1)
            self.assertIn("--write", said)
