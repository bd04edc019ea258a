# SPDX-License-Identifier: Apache-2.0
"""cmake/collect_codegen.py, on hand-made cubins and, where there is one, on nvcc's."""

import collections
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import collect_codegen as collect
from fixture import FolderTest

PROGBITS, SYMTAB, STRTAB, NOBITS = 1, 2, 3, 8


def make_cubin(kernel="x", sm=90, abi=8, code=b"\x11" * 16, constants=b"\x22" * 8, extra=(),
               kernels=None):
    """A cubin with the sections that ptxas writes for one kernel.

    `extra` are further (name, type, data).
    """
    kernels = [kernel] if kernels is None else kernels
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in kernels)
    symbols = bytes(24)
    for name in kernels:  # name, info (FUNC, GLOBAL), other (CUDA_ENTRY), section, value, size
        symbols += struct.pack("<IBBHQQ", strings.index(b"\0" + name.encode() + b"\0") + 1, 0x12,
                               0x10, 4, 0, len(code))
    sections = [("", 0, b""), (".strtab", STRTAB, strings), (".symtab", SYMTAB, symbols),
                (f".nv.info.{kernel}", 0x70000000, kernel.encode()),
                (f".nv.constant0.{kernel}", PROGBITS, bytes(len(kernel))),
                (f".nv.constant3.{kernel}", PROGBITS, constants),
                (f".text.{kernel}", PROGBITS, code),
                (f".nv.shared.{kernel}", NOBITS, bytes(64)), *extra]
    names = b"".join(name.encode() + b"\0" for name, _, _ in sections) + b".shstrtab\0"
    sections.append((".shstrtab", STRTAB, names))
    body, headers, name_offset = b"", b"", 0
    for name, kind, data in sections:
        headers += struct.pack("<IIQQQQIIQQ", name_offset, kind, 0, 0, 64 + len(body), len(data),
                               1 if kind == SYMTAB else 0, 0, 1, 24 if kind == SYMTAB else 0)
        name_offset += len(name) + 1
        body += b"" if kind == NOBITS else data
    flags = sm << 8 if abi >= 8 else sm
    ident = b"\x7fELF\x02\x01\x01\x41" + bytes([abi]) + bytes(7)
    return (ident + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), flags, 64, 0, 0,
                                64, len(sections), len(sections) - 1) + body + headers)


def hash_of(**fields):
    return collect.code_sha256(collect.parse_cubin(make_cubin(**fields)))


def make_log(symbol="x", archs=("sm_80", "sm_90"), smem=", 256 bytes smem"):
    return "".join(
        "ptxas info    : 0 bytes gmem, 16 bytes cmem[3]\n"
        f"ptxas info    : Compiling entry function '{symbol}' for '{arch}'\n"
        f"ptxas info    : Function properties for {symbol}\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        f"ptxas info    : Used 14 registers, used 1 barriers{smem}, 360 bytes cmem[0]\n"
        for arch in archs)


def make_ptx(symbol="x"):
    return f"// Cuda compilation tools\n.version 9.0\n.visible .entry {symbol}(\n)\n{{\nret;\n}}\n"


DISASSEMBLY = """\t.target\tsm_90

//--------------------- .text.x   --------------------------
        .size           x,(.L_x_1 - x)
x:
.text.x:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDGSTS.E.BYPASS.LTC128B.128.ZFILL [R3], [R4.64], P1 ;
        /*0020*/                   HMMA.16816.F32 R4, R8, R2, RZ ;
        /*0030*/             @!UP1 HMMA.16816.F32 R4, R8, R2, RZ ;
        /*0040*/               @PT EXIT ;
.L_x_0:
        /*0050*/                   BRA `(.L_x_0);
        /*0060*/                   NOP;
.L_x_1:
"""
OPCODES = {"BRA": 1, "EXIT": 1, "HMMA.16816.F32": 2, "LDC": 1,
           "LDGSTS.E.BYPASS.LTC128B.128.ZFILL": 1, "NOP": 1}


# Takes code's first byte for what each 16 bytes do, of the architectures that it is asked for.
FAKE_NVDISASM = f"""#!/usr/bin/env -S "{sys.executable}"
import sys
if sys.argv[1] == "--version":
    print("release 13.0, V13.0.39")
else:
    assert sys.argv[1] == "--binary" and sys.argv[2] in ("SM80", "SM90"), sys.argv
    code = open(sys.argv[3], "rb").read()
    for at in range(0, len(code), 16):
        opcode = {{0x11: "LDC", 0x33: "HMMA.16816.F32", 0x44: "."}}[code[at]]
        print(f"        /*{{at:04x}}*/                   {{opcode}} R1 ;")
"""


class PtxasLogTest(unittest.TestCase):
    def test_resources_are_read_for_each_architecture(self):
        self.assertEqual(collect.parse_ptxas_log(make_log()), {arch: {
            "symbol": "x", "registers": 14, "static_smem_bytes": 256, "stack_bytes": 0,
            "spill_store_bytes": 0, "spill_load_bytes": 0} for arch in ("sm_80", "sm_90")})

    def test_a_kernel_without_static_shared_memory_has_zero_bytes(self):
        kernels = collect.parse_ptxas_log(make_log(smem=""))
        self.assertEqual(kernels["sm_80"]["static_smem_bytes"], 0)

    def test_stack_and_spills_of_called_functions_count(self):
        called = ("ptxas info    : Function properties for called\n"
                  "    24 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n")
        kernels = collect.parse_ptxas_log(make_log(archs=["sm_90"]) + called)
        self.assertEqual([kernels["sm_90"][key] for key in
                          ("stack_bytes", "spill_store_bytes", "spill_load_bytes")], [24, 4, 8])

    def test_a_log_without_a_kernel_is_an_error(self):
        with self.assertRaisesRegex(collect.CodegenError, "names no kernel"):
            collect.parse_ptxas_log("ptxas info    : 0 bytes gmem\n")

    def test_a_log_without_a_figure_is_an_error(self):
        for lost, key in (("Used", "registers"), ("stack frame", "stack_bytes")):
            text = "".join(line for line in make_log().splitlines(True) if lost not in line)
            with self.assertRaisesRegex(collect.CodegenError, f"no {key} for x on sm_80"):
                collect.parse_ptxas_log(text)

    def test_two_kernels_for_one_architecture_are_an_error(self):
        with self.assertRaisesRegex(collect.CodegenError, "both x and y for sm_90"):
            collect.parse_ptxas_log(make_log("x", ["sm_90"]) + make_log("y", ["sm_90"]))


class CubinTest(unittest.TestCase):
    def test_kernels_and_sm_version_are_read_in_both_abis(self):
        for abi, sm in ((7, 80), (8, 90), (8, 100)):
            cubin = collect.parse_cubin(make_cubin("_Z1xv", sm=sm, abi=abi))
            self.assertEqual((cubin.sm, cubin.kernels), (sm, ["_Z1xv"]))

    def test_the_hash_ignores_names(self):
        self.assertEqual(hash_of(kernel="x"), hash_of(kernel="a_much_longer_name"))

    def test_the_hash_sees_one_byte_of_code_constants_and_initialised_data(self):
        hashes = {hash_of(), hash_of(code=b"\x11" * 15 + b"\x12"), hash_of(constants=b"\x23" * 8),
                  hash_of(extra=[(".nv.global.init", PROGBITS, b"\x01")]),
                  hash_of(extra=[(".nv.global.init", PROGBITS, b"\x02")]),
                  hash_of(extra=[(".nv.constant4", PROGBITS, b"\x01")])}
        self.assertEqual(len(hashes), 6)

    def test_the_hash_ignores_parameters_debug_information_and_zero_filled_data(self):
        self.assertEqual(hash_of(), hash_of(extra=[
            (".nv.constant0.y", PROGBITS, b"\x01"), (".debug_line", PROGBITS, b"x"),
            (".nv.global.init", NOBITS, b"xx"), (".rela.text.x", PROGBITS, b"x")]))

    def test_the_hash_sees_where_a_section_ends(self):
        hashes = {hash_of(extra=[(".text.a", PROGBITS, first), (".text.b", PROGBITS, second)])
                  for first, second in ((b"12", b"3"), (b"1", b"23"))}
        self.assertEqual(len(hashes), 2)

    def test_a_cubin_without_code_is_an_error(self):
        with self.assertRaisesRegex(collect.CodegenError, "no machine code"):
            hash_of(code=b"")

    def test_what_is_no_whole_cubin_is_an_error(self):
        whole = make_cubin()
        for data in (b"", b"hello", b"\x7fELF\x01" + whole[5:], whole[:40], whole[:100], whole[:-1],
                     whole[:18] + b"\x3e\x00" + whole[20:]):
            with self.subTest(size=len(data)), self.assertRaises(collect.CodegenError):
                collect.parse_cubin(data)


class PtxAndSassTest(unittest.TestCase):
    def test_ptx_is_compared_without_names_comments_and_line_information(self):
        plain = ".visible .entry _Z1xv(\n)\n.shared .b8 _ZZ1xvE1s[4];\n{\nret;\n}\n"
        told = ("// built today\n.file 1 \"a.cu\"\n.visible .entry _Z4loudv(\n)\n"
                "\t.shared .b8 _ZZ4loudvE1s[4];\n{\n.loc 1 2 3\n\tret; // done\n\n}\n")
        self.assertEqual(collect.normalise_ptx(plain, "_Z1xv"),
                         collect.normalise_ptx(told, "_Z4loudv"))
        c_linkage = plain.replace("_Z1xv", "y").replace("_ZZ1xv", "_ZZ1y")
        self.assertEqual(collect.normalise_ptx(plain, "_Z1xv"),
                         collect.normalise_ptx(c_linkage, "y"))
        self.assertNotEqual(collect.normalise_ptx(plain, "_Z1xv"),
                            collect.normalise_ptx(plain.replace("ret", "exit"), "_Z1xv"))

    def test_opcodes_keep_modifiers_and_lose_predicates(self):
        opcodes, = collect.parse_disassembly(DISASSEMBLY, [0x70])
        self.assertEqual(collections.Counter(opcodes), OPCODES)

    def test_an_instruction_is_of_the_kernel_that_its_address_lies_in(self):
        first, second, third = collect.parse_disassembly(DISASSEMBLY, [0x20, 0x10, 0x40])
        self.assertEqual(sorted(first), ["LDC", "LDGSTS.E.BYPASS.LTC128B.128.ZFILL"])
        self.assertEqual(second, ["HMMA.16816.F32"])
        self.assertEqual(sorted(third), ["BRA", "EXIT", "HMMA.16816.F32", "NOP"])

    def test_a_disassembly_that_lacks_a_kernel_or_goes_on_behind_the_last_is_an_error(self):
        for text, sizes, why in (("\t.target\tsm_90\nx:\n", [16], "no instruction"),
                                 (DISASSEMBLY, [0x70, 16], "no instruction of a kernel"),
                                 (DISASSEMBLY, [0x60], "at 0x60, behind the code's end")):
            with self.subTest(why=why), self.assertRaisesRegex(collect.CodegenError, why):
                collect.parse_disassembly(text, sizes)


class CollectTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.instances = []
        self.add("minimal_scalar", "x")
        self.add("kv_tiling", "y", code=b"\x33" * 16)
        self.nvdisasm = self.write("nvdisasm", FAKE_NVDISASM, 0o755)

    def add(self, variant, symbol, archs=("sm_80", "sm_90"), **cubin):
        keep = f"build/objects/{symbol}.fatbin.keep"
        self.write(f"{keep}/ptxas.log", make_log(symbol, archs))
        for arch in archs:
            ptx = self.write(f"{keep}/{symbol}.compute_{arch[3:]}.ptx", make_ptx(symbol))
            ptx.with_suffix(".cubin").write_bytes(make_cubin(symbol, sm=int(arch[3:]), **cubin))
        self.instances.append({"variant": variant, "set": "smem", "symbol": symbol,
                               "source": f"/elsewhere/generated/{symbol}.cu"})

    def collect(self, *extra):
        listed = self.write("instances.json", json.dumps({"instances": self.instances}))
        return self.run_main(collect.main, "--instances", listed, "--keep-root",
                             self.path / "build", "--out-dir", self.path / "out", *extra)

    def out(self, name):
        return json.loads((self.path / "out" / name).read_text(encoding="utf-8"))

    def fails(self, pattern):
        status, errors = self.collect("--nvdisasm", str(self.nvdisasm))
        self.assertEqual(status, 1)
        self.assertRegex(errors, pattern)
        self.assertFalse((self.path / "out").exists())

    def test_both_files_hold_each_instance_on_each_architecture(self):
        self.assertEqual(self.collect("--nvdisasm", str(self.nvdisasm)), (0, ""))
        resources, codegen = self.out("resources.json"), self.out("codegen.json")
        places = [(variant, arch) for variant in ("minimal_scalar", "kv_tiling")
                  for arch in ("sm_80", "sm_90")]
        for value in (resources, codegen):
            self.assertEqual(value["schema_version"], 1)
            self.assertEqual([(row["variant"], row["arch"]) for row in value["instances"]], places)
        self.assertEqual(resources["instances"][0], {
            "variant": "minimal_scalar", "arch": "sm_80", "registers": 14,
            "static_smem_bytes": 256, "stack_bytes": 0, "spill_store_bytes": 0,
            "spill_load_bytes": 0})
        self.assertEqual(codegen["disassembler"], "nvdisasm 13.0.39")
        first, _, other, _ = codegen["instances"]
        self.assertEqual([first["opcodes"], other["opcodes"]],
                         [{"LDC": 1}, {"HMMA.16816.F32": 1}])
        self.assertEqual(first["code_sha256"], hash_of())
        self.assertNotEqual(first["code_sha256"], other["code_sha256"])
        self.assertEqual(first["ptx_sha256"], other["ptx_sha256"])

    def test_the_hash_of_the_sources_is_in_it(self):
        self.collect("--nvdisasm", "", "--kernel-sources", "ab12")
        self.assertEqual(self.out("codegen.json")["kernel_source_sha256"], "ab12")

    def test_a_failure_leaves_no_facts_of_an_older_build(self):
        self.collect("--nvdisasm", "")
        self.assertEqual(len(list((self.path / "out").iterdir())), 2)
        next((self.path / "build").rglob("x.compute_90.cubin")).unlink()
        self.assertEqual(self.collect("--nvdisasm", "")[0], 1)
        self.assertEqual(list((self.path / "out").iterdir()), [])

    def test_the_same_input_gives_the_same_bytes(self):
        self.collect("--nvdisasm", str(self.nvdisasm))
        before = [path.read_bytes() for path in sorted((self.path / "out").iterdir())]
        self.collect("--nvdisasm", str(self.nvdisasm))
        self.assertEqual([path.read_bytes() for path in sorted((self.path / "out").iterdir())],
                         before)
        self.assertEqual(len(before), 2)

    def test_without_a_disassembler_the_hashes_are_there_and_the_loss_is_told(self):
        status, errors = self.collect("--nvdisasm", "")
        self.assertEqual(status, 0)
        self.assertIn("no nvdisasm", errors)
        codegen = self.out("codegen.json")
        self.assertEqual(codegen["disassembler"], "")
        self.assertEqual(codegen["instances"][0]["opcodes"], {})
        self.assertEqual(codegen["instances"][0]["code_sha256"], hash_of())

    def test_a_disassembler_that_is_none_is_an_error(self):
        status, errors = self.collect("--nvdisasm", "/bin/true")
        self.assertEqual(status, 1)
        self.assertIn("is it nvdisasm?", errors)

    def test_what_does_not_fit_together_is_an_error(self):
        def cubin():
            return next((self.path / "build").rglob("x.compute_90.cubin"))

        def forget():
            self.instances = []

        for pattern, damage in (
                ("no instruction", lambda: self.add("wmma_pv", "z", code=b"\x44" * 16)),
                ("expected one lost.fatbin.keep, found none",
                 lambda: self.instances[0].update(source="lost.cu")),
                ("expected one x.fatbin.keep",
                 lambda: (self.path / "build" / "stale" / "x.fatbin.keep").mkdir(parents=True)),
                ("lists no instance", forget),
                ("variant minimal_scalar twice",
                 lambda: self.instances[1].update(variant="minimal_scalar")),
                ("no cubin for sm_90", lambda: cubin().unlink()),
                ("is for SM 89, but ptxas compiled sm_80, sm_90",
                 lambda: cubin().write_bytes(make_cubin("x", sm=89))),
                (r"holds the kernels \['z'\], but ptxas reported x",
                 lambda: cubin().write_bytes(make_cubin("z"))),
                ("an instance is one kernel",
                 lambda: cubin().write_bytes(make_cubin("x", kernels=["x", "z"]))),
                ("minimal_scalar should be w", lambda: self.instances[0].update(symbol="w")),
                ("different architectures", lambda: self.add("wmma_pv", "z", archs=("sm_90",)))):
            with self.subTest(pattern):
                self.setUp()  # a folder of its own
                damage()
                self.fails(pattern)

    def test_but_those_of_another_set_may_be(self):
        self.add("wmma_pv", "z", archs=("sm_90",))
        self.instances[-1]["set"] = "mma90"
        self.assertEqual(self.collect("--nvdisasm", str(self.nvdisasm)), (0, ""))
        self.assertEqual([row["arch"] for row in self.out("resources.json")["instances"]
                          if row["variant"] == "wmma_pv"], ["sm_90"])

    def test_a_name_matches_its_mangled_symbol_but_no_longer_one(self):
        self.assertTrue(collect.names_symbol("tile", "_ZN10warpledger4tileEv"))
        self.assertTrue(collect.names_symbol("tile", "tile"))
        self.assertFalse(collect.names_symbol("tile", "_ZN10warpledger9tile_wmmaEv"))
        self.assertFalse(collect.names_symbol("tile", "tile_wmma"))


@unittest.skipUnless(shutil.which("nvcc"), "no nvcc on PATH")
class NvccTest(unittest.TestCase):
    ARCHS = ("80", "90")
    # Constants, static shared memory, initialised global data and a division,
    # which calls a routine, so that the cubin has every kind of section.
    SOURCE = """
        __constant__ float kTable[4] = {1, 2, 3, 4};
        __device__ int chosen = 3;
        __global__ void NAME(float* p) {
          __shared__ float s[64];
          s[threadIdx.x] = p[threadIdx.x] * kTable[threadIdx.x & 3] / p[1];
          __syncthreads();
          p[threadIdx.x] = s[63 - threadIdx.x] * FACTOR + chosen;
        }
        """

    @classmethod
    def setUpClass(cls):
        cls.disassembler = collect.Disassembler(collect.find_nvdisasm())
        with tempfile.TemporaryDirectory() as scratch:
            cls.kept = {kernel: cls.compile(pathlib.Path(scratch), *kernel) for kernel in
                        (("alpha", "2"), ("a_name_of_another_length", "2"), ("alpha", "3"))}

    @classmethod
    def compile(cls, folder, name, factor):
        keep = folder / f"{name}_{factor}"
        keep.mkdir()
        source = folder / f"{name}_{factor}.cu"
        source.write_text(cls.SOURCE.replace("NAME", name).replace("FACTOR", factor),
                          encoding="utf-8")
        done = subprocess.run(
            ["nvcc", *(f"--generate-code=arch=compute_{arch},code=[sm_{arch}]"
                       for arch in cls.ARCHS), "-Xptxas=-v", "--keep", "--keep-dir", keep, "-c",
             source, "-o", folder / "x.o"], capture_output=True, text=True, check=True)
        kernels = collect.parse_ptxas_log(done.stderr)
        return {arch: (kernels[arch], cubin, collect.normalise_ptx(
            collect.ptx_of(path).read_text(encoding="utf-8"), kernels[arch]["symbol"]),
                       cls.disassembler.kernels(path))
                for arch, path, cubin in collect.match_archs(keep, kernels)}

    def test_each_architecture_has_its_kernel_and_resources(self):
        kept = self.kept["alpha", "2"]
        self.assertEqual(list(kept), ["sm_80", "sm_90"])
        for resources, cubin, _, _ in kept.values():
            self.assertEqual(cubin.kernels, ["_Z5alphaPf"])
            self.assertEqual(resources["static_smem_bytes"], 256)
            self.assertGreater(resources["registers"], 0)

    def test_kernels_that_differ_by_name_alone_have_equal_hashes(self):
        for (_, cubin, ptx, _), (_, other_cubin, other_ptx, _) in zip(
                self.kept["alpha", "2"].values(),
                self.kept["a_name_of_another_length", "2"].values()):
            self.assertEqual(collect.code_sha256(cubin), collect.code_sha256(other_cubin))
            self.assertEqual(ptx, other_ptx)

    def test_kernels_that_differ_by_one_constant_have_different_hashes(self):
        for (_, cubin, ptx, _), (_, other_cubin, other_ptx, _) in zip(
                self.kept["alpha", "2"].values(), self.kept["alpha", "3"].values()):
            self.assertNotEqual(collect.code_sha256(cubin), collect.code_sha256(other_cubin))
            self.assertNotEqual(ptx, other_ptx)

    def test_opcodes_of_raw_codes_are_those_of_their_cubins(self):
        if not self.disassembler.name:
            self.skipTest("no nvdisasm (pip install nvidia-cuda-nvdisasm)")
        for arch in ("sm_80", "sm_90"):
            kept = [kernel[arch] for kernel in self.kept.values()]
            alone = [[opcode for code in disassembled.values() for opcode, _ in code
                      if opcode[0] != "."] for _, _, _, disassembled in kept]
            self.assertGreater(len(alone[0]), 10)
            self.assertEqual(
                self.disassembler.opcodes(arch, [collect.code_of(cubin) for _, cubin, _, _ in kept]),
                alone)
