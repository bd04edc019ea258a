#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes resources.json and codegen.json from what the instances' compiles left.

Reads the generator's list of instances and, for each, the folder
`<source's name>.fatbin.keep` that cmake/instance_launcher.sh left beside the
fat binary: ptxas.log, and PTX and cubin of every architecture. The schema is in
reports/RECORD.md. Same input, same bytes out.

  collect_codegen.py --instances instances.json --keep-root build --out-dir out

Without a disassembler (nvdisasm) the opcode histograms are empty and
"disassembler" is ""; the hashes of the machine code need none, because the
cubin is parsed here. --nvdisasm "" switches the disassembler off.

Errors: exit status 1 and one line that says what, why and what to do. An
instance without a keep folder, a log without a kernel, a cubin without machine
code, or a disassembly without an instruction is an error, never an empty row.
"""

import argparse
import bisect
import collections
import concurrent.futures
import hashlib
import importlib.metadata
import itertools
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SCHEMA_VERSION = 1


class CodegenError(Exception):
    """What went wrong, why, and what to do."""


# --- ptxas -v ----------------------------------------------------------------

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(sm_\w+)'")
_STACK = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_STATIC_SMEM = re.compile(r"(\d+) bytes smem\b")


def parse_ptxas_log(text):
    """The resources that `ptxas -v` reports, by architecture.

    Returns {arch: {"symbol", "registers", "static_smem_bytes", "stack_bytes",
    "spill_store_bytes", "spill_load_bytes"}}. Stack is the largest of the
    kernel and the functions it calls, spills are their sum.
    """
    kernels = {}
    row = None
    for line in text.splitlines():
        if match := _ENTRY.search(line):
            symbol, arch = match.groups()
            if arch in kernels:
                raise CodegenError(
                    f"ptxas compiled both {kernels[arch]['symbol']} and {symbol} for {arch}; an "
                    "instance is one kernel. Move the other to a file of its own.")
            row = kernels[arch] = {
                "symbol": symbol, "registers": None, "static_smem_bytes": 0,
                "stack_bytes": None, "spill_store_bytes": 0, "spill_load_bytes": 0}
        elif row is None:
            continue
        elif match := _STACK.search(line):
            stack, stores, loads = (int(figure) for figure in match.groups())
            row["stack_bytes"] = max(stack, row["stack_bytes"] or 0)
            row["spill_store_bytes"] += stores
            row["spill_load_bytes"] += loads
        elif match := _REGISTERS.search(line):
            row["registers"] = int(match.group(1))
            if smem := _STATIC_SMEM.search(line):
                row["static_smem_bytes"] = int(smem.group(1))
    if not kernels:
        raise CodegenError("the ptxas log names no kernel; compile with -Xptxas=-v for real "
                           "architectures (sm_NN).")
    for arch, kernel in kernels.items():
        for key in ("registers", "stack_bytes"):
            if kernel[key] is None:
                raise CodegenError(f"the ptxas log has no {key} for {kernel['symbol']} on {arch}; "
                                   "its wording may have changed with the toolkit.")
    return kernels


# --- cubin -------------------------------------------------------------------

_EM_CUDA = 190
_SHT_SYMTAB = 2
_SHT_NOBITS = 8
_STT_FUNC = 2
_STO_CUDA_ENTRY = 0x10
# Constant bank 0 holds the launch's parameters, bank 1 is the driver's.
_CODE_SECTION = re.compile(r"(\.text)\..+|(\.nv\.constant(?:[2-9]|[1-9]\d+))(?:\..+)?|"
                           r"(\.nv\.global\.init)")

Section = collections.namedtuple("Section", "name type entry_size data")
Cubin = collections.namedtuple("Cubin", "sm kernels sections")


def _c_string(table, offset):
    return table[offset:table.index(b"\0", offset)].decode()


def parse_cubin(data):
    """Reads a cubin, which is a little-endian ELF64 file.

    Returns its SM version as a number, the symbols of its kernels, and its
    sections in file order.
    """
    try:
        if data[:6] != b"\x7fELF\x02\x01":
            raise CodegenError("not a little-endian ELF64 file.")
        if struct.unpack_from("<H", data, 18)[0] != _EM_CUDA:
            raise CodegenError("an ELF file, but not for NVIDIA GPUs.")
        table_offset, flags = struct.unpack_from("<QI", data, 40)
        entry_size, count, names_index = struct.unpack_from("<HHH", data, 58)
        # ABI 8, of CUDA 13, moved the SM version up by one byte.
        sm = (flags >> 8 if data[8] >= 8 else flags) & 0xFF
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, table_offset + i * entry_size)
                   for i in range(count)]
        contents = [b"" if header[1] == _SHT_NOBITS else data[header[4]:header[4] + header[5]]
                    for header in headers]
        for header, content in zip(headers, contents):
            if header[1] != _SHT_NOBITS and len(content) != header[5]:
                raise CodegenError("cut short: a section reaches past the end of the file.")
        sections = [Section(_c_string(contents[names_index], header[0]), header[1], header[9],
                            content)
                    for header, content in zip(headers, contents)]
        kernels = []
        for header, section in zip(headers, sections):
            if section.type != _SHT_SYMTAB:
                continue
            for offset in range(0, len(section.data), section.entry_size):
                name, info, other = struct.unpack_from("<IBB", section.data, offset)
                if info & 0xF == _STT_FUNC and other & _STO_CUDA_ENTRY:
                    kernels.append(_c_string(contents[header[6]], name))
    except (struct.error, ValueError, IndexError) as error:
        raise CodegenError(f"not a readable cubin ({error}).") from error
    return Cubin(sm, kernels, sections)


def code_sha256(cubin):
    """Hashes machine code and constants; two kernels that differ by name alone agree.

    Names are left out, because SASS doesn't encode them: calls and addresses
    are numbers or relocations.
    """
    digest = hashlib.sha256()
    code_bytes = 0
    for section in cubin.sections:
        match = _CODE_SECTION.fullmatch(section.name)
        if not match or section.type == _SHT_NOBITS:
            continue
        kind = next(group for group in match.groups() if group)
        digest.update(f"{kind} {len(section.data)}\n".encode())
        digest.update(section.data)
        if kind == ".text":
            code_bytes += len(section.data)
    if code_bytes == 0:
        raise CodegenError("the cubin holds no machine code (.text.*).")
    return digest.hexdigest()


def code_of(cubin):
    """The machine code, with that of functions that the kernel calls, as bytes."""
    return b"".join(section.data for section in cubin.sections
                    if section.name.startswith(".text."))


# --- PTX and SASS ------------------------------------------------------------


def ptx_lines(text):
    """The lines of PTX without comments, indentation, line information and empty lines."""
    stripped = (line.partition("//")[0].strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith((".loc", ".file"))]


def normalise_ptx(text, symbol):
    """PTX as ptx_lines() sees it, with KERNEL for the kernel's own name."""
    text = re.sub(rf"(?<![\w$.%]){re.escape(symbol)}(?=_param_|(?![\w$]))", "KERNEL", text)
    # The kernel's variables carry its name in their own: _ZZ4mainPfE4tile.
    inner = symbol[2:] if symbol.startswith("_Z") else f"{len(symbol)}{symbol}"
    return "\n".join(ptx_lines(text.replace(inner, "KERNEL")))


_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+\{?\s*(?:@!?U?P\w+\s+)?([A-Z][A-Za-z0-9_.]*)")


def parse_disassembly(text, sizes):
    """The opcodes in the disassembly of codes of `sizes` bytes that lie one behind the other.

    A list for each code, in program order, with modifiers, predicates left out.
    """
    ends = list(itertools.accumulate(sizes))
    opcodes = [[] for _ in sizes]
    for line in text.splitlines():
        if match := _INSTRUCTION.match(line):
            address = int(match.group(1), 16)
            if address >= ends[-1]:
                raise CodegenError(f"the disassembly has an instruction at {address:#x}, behind "
                                   "the code's end.")
            opcodes[bisect.bisect_right(ends, address)].append(match.group(2))
    if not all(opcodes):
        raise CodegenError("the disassembly holds no instruction of a kernel; nvdisasm's format "
                           "may have changed.")
    return opcodes


_CODE_HEADER = re.compile(r"^\s*\.section\s+\.text\.([^\s,]+)")
_LABEL = re.compile(r"^(\.L_\w+):")


def parse_disassembly_by_kernel(text):
    """The instructions of each kernel in program order: {symbol: [(opcode, rest of line)]}.

    Labels, which branches name, stand among them as (".L_x_0", "").
    """
    kernels, instructions = {}, None
    for line in text.splitlines():
        if match := _CODE_HEADER.match(line):
            instructions = kernels.setdefault(match.group(1), [])
        elif instructions is None:
            continue
        elif match := _INSTRUCTION.match(line):
            instructions.append((match.group(2), line[match.end():].strip()))
        elif match := _LABEL.match(line):
            instructions.append((match.group(1), ""))
    if not any(opcode[0] != "." for code in kernels.values() for opcode, _ in code):
        raise CodegenError("the disassembly holds no instruction under a .text section; "
                           "nvdisasm's format may have changed.")
    return kernels


def find_nvdisasm():
    """The disassembler on PATH, in the toolkit, or from PyPI's nvidia-cuda-nvdisasm; or ""."""
    candidates = [shutil.which("nvdisasm")]
    if nvcc := shutil.which("nvcc"):
        candidates.append(pathlib.Path(nvcc).resolve().parent / "nvdisasm")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if variable in os.environ:
            candidates.append(pathlib.Path(os.environ[variable]) / "bin" / "nvdisasm")
    candidates.append("/usr/local/cuda/bin/nvdisasm")
    try:
        files = importlib.metadata.files("nvidia-cuda-nvdisasm") or []
        candidates += [file.locate() for file in files if file.name == "nvdisasm"]
    except importlib.metadata.PackageNotFoundError:
        pass
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return str(candidate)
    return ""


class Disassembler:
    """nvdisasm, or nothing: `name` is "" and no opcode is known then."""

    def __init__(self, path):
        self._path = path
        self.name = ""
        if not path:
            return
        match = re.search(r"\bV(\d+(?:\.\d+)+)", self._run("--version"))
        if not match:
            raise CodegenError(f"{path} --version names no version; is it nvdisasm?")
        self.name = f"nvdisasm {match.group(1)}"

    def opcodes(self, arch, codes):
        """As parse_disassembly(), of machine codes (bytes) for `arch`; [] each without nvdisasm.

        In one run, as raw code: nvdisasm takes half a second to start, and most kernels less.
        """
        if not self._path:
            return [[] for _ in codes]
        with tempfile.NamedTemporaryFile(suffix=".bin") as raw:
            raw.write(b"".join(codes))
            raw.flush()
            text = self._run("--binary", arch.replace("sm_", "SM"), raw.name)
        return parse_disassembly(text, [len(code) for code in codes])

    def kernels(self, cubin_path):
        """As parse_disassembly_by_kernel(); {} without a disassembler."""
        if not self._path:
            return {}
        return parse_disassembly_by_kernel(self._run("--print-code", str(cubin_path)))

    def _run(self, *args):
        try:
            done = subprocess.run([self._path, *args], capture_output=True, text=True, check=False)
        except OSError as error:
            raise CodegenError(f"{self._path} doesn't start: {error}. Pass another with "
                               "--nvdisasm.") from error
        if done.returncode != 0:
            raise CodegenError(f"{self._path} {' '.join(args)} failed: {done.stderr.strip()}")
        return done.stdout


# --- Instances ---------------------------------------------------------------

_KERNELS_PER_RUN = 32  # of the disassembler: its start is then some hundredths of each kernel's time


def load_instances(path):
    """The generator's list: [{"variant", "set", "source", "symbol"}], unique, not empty."""
    try:
        instances = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["instances"]
        variants = [instance["variant"] for instance in instances if instance["set"]]
        sources = [pathlib.Path(instance["source"]).name for instance in instances]
        symbols = [instance["symbol"] for instance in instances]
        if not all(isinstance(name, str) for name in variants + symbols):
            raise TypeError("a name is no text")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CodegenError(f"{path} is not a list of instances: {error!r}. Rebuild; the "
                           "generator writes it.") from error
    if not instances:
        raise CodegenError(f"{path} lists no instance; nothing would be checked.")
    for kind, names in (("variant", variants), ("source", sources), ("symbol", symbols)):
        twice = [name for name, count in collections.Counter(names).items() if count > 1]
        if twice:
            raise CodegenError(f"{path} lists the {kind} {twice[0]} twice.")
    return instances


def find_keep_folders(keep_root):
    """{name: folders} of all that compiles left under `keep_root`."""
    folders = {}
    for folder in sorted(pathlib.Path(keep_root).rglob("*.fatbin.keep")):
        if folder.is_dir():
            folders.setdefault(folder.name, []).append(folder)
    return folders


def keep_folder_of(source, folders):
    """The one folder of find_keep_folders() that the compile of `source` left."""
    name = pathlib.Path(source).stem + ".fatbin.keep"
    found = folders.get(name, [])
    if len(found) != 1:
        places = ", ".join(str(folder) for folder in found) or "none"
        raise CodegenError(f"expected one {name}, found {places}. Build the instances through "
                           "cmake/instance_launcher.sh into a clean folder.")
    return found[0]


def names_symbol(name, symbol):
    """Whether `symbol` is `name`, as it stands or mangled."""
    return symbol == name or (symbol.startswith("_Z") and f"{len(name)}{name}" in symbol)


def ptx_of(cubin_path):
    """The PTX that ptxas made `cubin_path` from; nvcc names both after the file and arch."""
    stem = cubin_path.name.removesuffix(".cubin")
    for name in (stem, re.sub(r"\.sm_\w+$", "", stem)):
        candidate = cubin_path.with_name(name + ".ptx")
        if candidate.is_file():
            return candidate
    raise CodegenError(f"no PTX beside {cubin_path}.")


def match_archs(keep, kernels):
    """Yields (arch, path of cubin, parsed cubin) for each architecture of the ptxas log."""
    by_number = {}
    for arch in kernels:
        by_number.setdefault(int(re.sub(r"\D", "", arch)), []).append(arch)
    cubins = {}
    for path in sorted(keep.glob("*.cubin")):
        try:
            cubin = parse_cubin(path.read_bytes())
        except CodegenError as error:
            raise CodegenError(f"{path}: {error}") from error
        archs = by_number.get(cubin.sm, [])
        if len(archs) != 1 or archs[0] in cubins:
            raise CodegenError(
                f"{path} is for SM {cubin.sm}, but ptxas compiled {', '.join(sorted(kernels))}. "
                "Each SM version can be there once (sm_90 or sm_90a, not both).")
        cubins[archs[0]] = (path, cubin)
    missing = sorted(set(kernels) - set(cubins))
    if missing:
        raise CodegenError(f"{keep} has no cubin for {', '.join(missing)}, which ptxas compiled.")
    for arch in sorted(cubins, key=lambda arch: (int(re.sub(r"\D", "", arch)), arch)):
        yield arch, *cubins[arch]


def collect_instance(instance, keep):
    """What one instance's compile left: rows for resources.json, rows for codegen.json that lack
    their opcodes, and the machine code that each of these is of."""
    log = keep / "ptxas.log"
    try:
        kernels = parse_ptxas_log(log.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise CodegenError(f"{error}. Compile through cmake/instance_launcher.sh.") from error
    except CodegenError as error:
        raise CodegenError(f"{log}: {error}") from error
    resources, codegen, codes = [], [], []
    for arch, path, cubin in match_archs(keep, kernels):
        row = dict(kernels[arch])
        symbol = row.pop("symbol")
        if cubin.kernels != [symbol]:
            raise CodegenError(f"{path} holds the kernels {cubin.kernels}, but ptxas reported "
                               f"{symbol}; an instance is one kernel. Rebuild.")
        if not names_symbol(instance["symbol"], symbol):
            raise CodegenError(f"{path} holds {symbol}, but {instance['variant']} should be "
                               f"{instance['symbol']}. Rebuild.")
        ptx_path = ptx_of(path)
        ptx = normalise_ptx(ptx_path.read_text(encoding="utf-8"), symbol)
        if ".entry KERNEL" not in ptx:
            raise CodegenError(f"{ptx_path} doesn't define {symbol}. Rebuild.")
        try:
            hashed = code_sha256(cubin)
        except CodegenError as error:
            raise CodegenError(f"{path}: {error}") from error
        resources.append({"variant": instance["variant"], "arch": arch, **row})
        codegen.append({"variant": instance["variant"], "arch": arch, "code_sha256": hashed,
                        "ptx_sha256": hashlib.sha256(ptx.encode()).hexdigest(), "opcodes": {}})
        codes.append(code_of(cubin))
    return resources, codegen, codes


def opcodes_of_all(archs, codes, disassembler):
    """Disassembler.opcodes() of `codes`, each of them for one of `archs`, by all cores."""
    of_arch = {}
    for i, arch in enumerate(archs):
        of_arch.setdefault(arch, []).append(i)
    batches = [(arch, indices[i:i + _KERNELS_PER_RUN]) for arch, indices in of_arch.items()
               for i in range(0, len(indices), _KERNELS_PER_RUN)]
    found = [[] for _ in codes]
    # The disassembler is a process of its own, so that threads use all cores.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        of_batches = pool.map(
            lambda batch: disassembler.opcodes(batch[0], [codes[i] for i in batch[1]]), batches)
        for (_, indices), opcodes in zip(batches, of_batches):
            for i, listed in zip(indices, opcodes):
                found[i] = listed
    return found


def add_opcodes(rows, codes, disassembler):
    """Counts the opcodes of rows for codegen.json, each of them of one of `codes`."""
    found = opcodes_of_all([row["arch"] for row in rows], codes, disassembler)
    for row, opcodes in zip(rows, found):
        row["opcodes"] = dict(sorted(collections.Counter(opcodes).items()))


def collect(instances, keep_root, disassembler):
    """Returns (resources.json, codegen.json) as values, instances in the generator's order."""
    # Instances of one set (generate_instances.cc) are compiled for the same architectures.
    resources, codegen, codes, archs_of = [], [], [], {}
    folders = find_keep_folders(keep_root)
    for instance in instances:
        rows = collect_instance(instance, keep_folder_of(instance["source"], folders))
        resources += rows[0]
        codegen += rows[1]
        codes += rows[2]
        of_set = archs_of.setdefault(instance["set"], {})
        of_set.setdefault(tuple(row["arch"] for row in rows[0]), instance["variant"])
    add_opcodes(codegen, codes, disassembler)
    for of_set in (archs for archs in archs_of.values() if len(archs) > 1):
        told = "; ".join(f"{variant}: {', '.join(archs)}" for archs, variant in of_set.items())
        raise CodegenError(f"instances were compiled for different architectures ({told}). "
                           "Rebuild in a clean folder.")
    return ({"schema_version": SCHEMA_VERSION, "instances": resources},
            {"schema_version": SCHEMA_VERSION, "disassembler": disassembler.name,
             "instances": codegen})


def write_json(path, value):
    """Replaces `path` in one step, so that a kill leaves the old file or the new."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    os.replace(part, path)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", required=True, help="the generator's instances.json")
    parser.add_argument("--keep-root", required=True,
                        help="folder under which the *.fatbin.keep folders lie")
    parser.add_argument("--out-dir", required=True, type=pathlib.Path)
    parser.add_argument("--kernel-sources", default="",
                        help="hash of the sources that the instances were compiled from")
    parser.add_argument("--nvdisasm", help='path; "" for none; default: search')
    args = parser.parse_args(argv)
    try:
        disassembler = Disassembler(
            find_nvdisasm() if args.nvdisasm is None else args.nvdisasm)
        resources, codegen = collect(load_instances(args.instances), args.keep_root, disassembler)
        codegen["kernel_source_sha256"] = args.kernel_sources
        args.out_dir.mkdir(parents=True, exist_ok=True)
        write_json(args.out_dir / "resources.json", resources)
        write_json(args.out_dir / "codegen.json", codegen)
    except CodegenError as error:
        # What an earlier build left speaks of other kernels.
        for name in ("resources.json", "codegen.json"):
            (args.out_dir / name).unlink(missing_ok=True)
        print(f"collect_codegen.py: {error}", file=sys.stderr)
        return 1
    if not disassembler.name:
        print("collect_codegen.py: no nvdisasm, so no opcodes; pip install nvidia-cuda-nvdisasm "
              "or pass --nvdisasm.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
