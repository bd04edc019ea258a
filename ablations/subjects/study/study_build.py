# SPDX-License-Identifier: Apache-2.0
"""Compiles a study's variants and says what machine code they are.

Reads a request (build.h's BuildRequest) as JSON on standard input and writes a reply (BuildReply) as
one line of JSON to standard output. Each distinct set of definitions, flags and sources is compiled
once, several at a time, into the study's cache: `builds/SIGNATURE/` has the library, and the signature
is of the compiler, the command and the content of every file that it read. A build is there whole or
not at all. Where there is no compiler, builds that were made elsewhere and came with the folder serve,
unless the study has changed.

A variant that does not build has its reason in the reply; what keeps all of them from being built is
its `error`.
"""

import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

# Beside this file in the sources and in the installed tree alike.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "cmake"))
import collect_codegen as codegen  # noqa: E402

LIBRARY = "study.so"
HEADERS = "<warpledger>/"  # files of the program's own, by name
ENTRIES = ("warpledger_call", "warpledger_study_version")


class BuildError(Exception):
    """Why something is not built, in one line."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def run(command, folder=None):
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, errors="replace")
    except OSError as error:
        raise BuildError(f"{command[0]} doesn't start: {error.strerror}") from error


def find_compiler(device):
    """The command that compiles; where to find nvcc, cmake/setup.sh knows too."""
    if device == "cpu":
        command = shlex.split(os.environ.get("CXX") or "c++")
        if not shutil.which(command[0]):
            raise BuildError(f"no {command[0]}, which compiles a study for the CPU. Install g++, or set CXX.")
        return command
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    candidates = [os.environ.get("CUDACXX"), "nvcc",
                  *(f"{home}/bin/nvcc" for home in [*homes, "/usr/local/cuda"])]
    for candidate in filter(None, candidates):
        if found := shutil.which(candidate):
            return [found]
    raise BuildError("no nvcc, which compiles a study's kernels. Install the CUDA toolkit, or set "
                     "CUDACXX.")


def version_of(compiler):
    asked = run([*compiler, "--version"])
    if asked.returncode != 0:
        raise BuildError(f"{compiler[0]} --version fails: {asked.stderr.strip()}")
    lines = [line for line in asked.stdout.splitlines() if line.strip()]
    named = next((line for line in lines if "release" in line), lines[0])  # as nvcc says it
    return " ".join([pathlib.Path(compiler[0]).name, *named.split()])


class Builder:
    def __init__(self, request):
        self.folder = pathlib.Path(request["folder"])
        self.cache = pathlib.Path(request["cache"])
        self.on_gpu = request["device"] == "gpu"
        self.header_folder = pathlib.Path(request["include"]).resolve()
        self.includes = [f"-I{self.header_folder}", f"-I{self.folder}"]
        self.flags = []
        if self.on_gpu:
            for arch in request["architectures"]:
                number = arch.removeprefix("sm_")
                self.flags.append(f"-gencode=arch=compute_{number},code=sm_{number}")
            self.flags += ["-Xcompiler=-fPIC,-fno-gnu-unique", "-Xptxas=-v"]
        else:
            self.flags += ["-fPIC"]
        self.hashes = {}
        (self.cache / "builds").mkdir(parents=True, exist_ok=True)
        self.write(self.cache / ".gitignore", "*\n")
        tools = self.cache / f"tools_{request['device']}.json"
        try:
            self.compiler = find_compiler(request["device"])
        except BuildError:
            # What was built elsewhere still says by what.
            if not tools.is_file():
                raise
            self.compiler, self.disassembler = None, None
            self.version, self.disassembler_name = json.loads(tools.read_text(encoding="utf-8"))
            return
        self.version = version_of(self.compiler)
        self.disassembler = codegen.Disassembler(codegen.find_nvdisasm()) if self.on_gpu else None
        self.disassembler_name = self.disassembler.name if self.on_gpu else "objdump"
        self.write(tools, json.dumps([self.version, self.disassembler_name]))

    def file_of(self, path):
        """Where a file is that a build has read."""
        if path.startswith(HEADERS):
            return self.header_folder / path.removeprefix(HEADERS)
        return self.folder / path

    def named(self, path):
        """Its name in this study's folder wherever that lies, for file_of()."""
        path = (self.folder / path).resolve()
        for folder, prefix in (self.header_folder, HEADERS), (self.folder.resolve(), ""):
            if path.is_relative_to(folder):
                return prefix + str(path.relative_to(folder))
        return str(path)

    def is_as_it_was(self, path, was):
        """Without a compiler there need be no system's headers either."""
        return (self.compiler is None and os.path.isabs(path)) or self.hash_of(path) == was

    def hash_of(self, path):
        """Of a file's content; "" where there is none."""
        if path not in self.hashes:
            file = self.file_of(path)
            self.hashes[path] = sha256(file.read_bytes()) if file.is_file() else ""
        return self.hashes[path]

    def write(self, path, text):
        """Whole or not at all."""
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as part:
            part.write(text)
        os.replace(part.name, path)

    def build(self, variant):
        """The facts of a variant's build, made now or before."""
        flags = [*self.flags, *variant["flags"], *(f"-D{each}" for each in variant["define"])]
        key = sha256(json.dumps([self.version, flags, variant["sources"],
                                 self.disassembler_name]).encode())
        index = self.cache / "builds" / f"{key[:32]}.json"
        try:
            known = json.loads(index.read_text(encoding="utf-8"))
            library = self.cache / known["facts"]["library"]
            if (library.is_file() and sha256(library.read_bytes()) == known["facts"]["library_sha256"]
                    and all(self.is_as_it_was(path, was) for path, was in known["files"].items())):
                return known["facts"]
        except (OSError, ValueError, KeyError):
            pass
        if self.compiler is None:
            raise BuildError("it was not built before, or its sources have changed since, and there is no "
                             f"compiler here; it was {self.version}")
        with tempfile.TemporaryDirectory(dir=self.cache) as scratch:
            part = pathlib.Path(scratch)
            files = self.compile(part, flags, variant["sources"])
            facts = self.facts_of(part, len(variant["sources"]))
            hashes = {path: self.hash_of(path) for path in sorted(files)}
            facts["signature"] = sha256(json.dumps([key, hashes]).encode())
            kept = self.cache / "builds" / facts["signature"][:32]
            facts["library"] = str((kept / LIBRARY).relative_to(self.cache))
            facts["library_sha256"] = sha256((part / LIBRARY).read_bytes())
            facts["read"] = sorted(self.own(files))
            kept.mkdir(exist_ok=True)
            os.replace(part / LIBRARY, kept / LIBRARY)
        self.write(index, json.dumps({"files": hashes, "facts": facts}))
        return facts

    def own(self, files):
        """Those in the study's folder, and others that it includes, but no system's header."""
        system = ["/usr/"]
        if self.on_gpu:
            system.append(str(pathlib.Path(self.compiler[0]).resolve().parents[1]))
        return [path for path in files if not path.startswith(tuple(system))]

    def compile(self, part, flags, sources):
        """Makes `part/study.so` and what it was made from; the files that were read."""
        files, objects = set(), []
        for i, source in enumerate(sources):
            if not (self.folder / source).is_file():
                raise BuildError(f"there is no source {source}")
            keep = part / f"keep{i}"
            keep.mkdir()
            objects.append(str(keep / "object.o"))
            depends = keep / "depends.d"
            command = [*self.compiler, *self.includes, *flags, "-c", source, "-o", objects[-1],
                       "-MD", "-MF", str(depends)]
            if self.on_gpu:
                command += ["--keep", "--keep-dir", str(keep)]
            done = run(command, self.folder)
            if done.returncode != 0:
                raise BuildError(f"{source} does not compile: {first_error(done.stderr)}")
            (keep / "log").write_text(done.stdout + done.stderr, encoding="utf-8")
            text = depends.read_text(encoding="utf-8").replace("\\\n", " ")
            read = re.split(r"(?<!\\)\s+", text.partition(": ")[2].strip())
            files.update(self.named(path.replace("\\ ", " ")) for path in read)
        linked = run([*self.compiler, "-shared", "-o", str(part / LIBRARY), *objects,
                      *(["-Xlinker", "-Bsymbolic"] if self.on_gpu else ["-Wl,-Bsymbolic"]),
                      *[flag for flag in flags if flag.startswith(("-gencode", "-l", "-L"))]],
                     self.folder)
        if linked.returncode != 0:
            raise BuildError(f"it does not link: {first_error(linked.stderr)}")
        listed = run(["nm", "-D", "--defined-only", str(part / LIBRARY)]).stdout
        defined = {line.split()[-1] for line in listed.splitlines() if line.strip()}
        for entry in ENTRIES:
            if entry not in defined:
                why = ("include <warpledger/study.h>" if entry == ENTRIES[1] else
                       "define it as extern \"C\" int warpledger_call(const WarpledgerCall*)")
                raise BuildError(f"its library has no function {entry}: {why}")
        return files

    def facts_of(self, part, sources):
        """Machine code and resources by architecture, and what the host's side is."""
        archs, host = {}, []
        for i in range(sources):
            keep = part / f"keep{i}"
            host.append(host_code(keep / "object.o"))
            if not self.on_gpu:
                add_host_kernel(archs, host[-1])
                continue
            by_arch = kernels_by_arch((keep / "log").read_text(encoding="utf-8"))
            if not by_arch:
                continue  # a source without a kernel
            for arch, path, cubin in codegen.match_archs(keep, by_arch):
                self.add_kernels(archs, arch, path, cubin, by_arch[arch])
        if not archs:
            raise BuildError("its sources define no kernel")
        for row in archs.values():
            row["code_sha256"] = join_hashes(row["code_sha256"])
            row["ptx_sha256"] = join_hashes(row["ptx_sha256"])
            row["opcodes"] = dict(sorted(row["opcodes"].items()))
        return {"archs": archs, "host_sha256": sha256("".join(map(str, host)).encode())}

    def add_kernels(self, archs, arch, path, cubin, kernels):
        row = archs.setdefault(arch, empty_row())
        for kernel in kernels:
            row["registers"] = max(row["registers"], kernel["registers"])
            for field in ("static_smem_bytes", "stack_bytes"):
                row[field] = max(row[field], kernel[field])
            for field in ("spill_store_bytes", "spill_load_bytes"):
                row[field] += kernel[field]
        ptx = codegen.ptx_of(path).read_text(encoding="utf-8")
        lines = codegen.ptx_lines(ptx)
        row["code_sha256"].append(codegen.code_sha256(cubin))
        row["ptx_sha256"].append(sha256("\n".join(lines).encode()))
        row["ptx"] += lines
        opcodes = self.disassembler.opcodes(arch, [codegen.code_of(cubin)])[0]
        row["opcodes"].update(opcodes)


def empty_row():
    return {"registers": 0, "static_smem_bytes": 0, "stack_bytes": 0, "spill_store_bytes": 0,
            "spill_load_bytes": 0, "code_sha256": [], "ptx_sha256": [], "ptx": [],
            "opcodes": collections.Counter()}


def join_hashes(hashes):
    return hashes[0] if len(hashes) == 1 else sha256(" ".join(hashes).encode())


def first_error(text):
    """The line of a compiler's output that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if re.search(r"\b(error|undefined|fatal)\b", line)),
                lines[-1] if lines else "without a word")


def kernels_by_arch(log):
    """What `ptxas -v` says of each kernel: {arch: [row of collect_codegen.parse_ptxas_log]}."""
    by_arch = {}
    for part in re.split(r"(?m)^(?=.*Compiling entry function)", log)[1:]:
        for arch, row in codegen.parse_ptxas_log(part).items():
            by_arch.setdefault(arch, []).append(row)
    return by_arch


_HOST_INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:\t(.*)$", re.MULTILINE)


def host_code(object_file):
    """The host's instructions without their addresses, with what they refer to, and its constants."""
    text = run(["objdump", "-d", "-r", "--no-show-raw-insn", str(object_file)]).stdout
    constants = run(["objdump", "-s", "-j", ".rodata", str(object_file)]).stdout
    # The first line of each names the file.
    return [_HOST_INSTRUCTION.findall(text), constants.splitlines()[2:]]


def add_host_kernel(archs, code):
    row = archs.setdefault("sm_10", empty_row())
    row["code_sha256"].append(sha256(json.dumps(code).encode()))
    row["opcodes"].update(line.split()[0] for line in code[0]
                          if line.strip() and not line.startswith("R_"))


def unread(request, builder, builds):
    """The names that no file of their own variants' builds has a word for."""
    texts = {}

    def words_of(path):
        if path not in texts:
            text = builder.file_of(path).read_text(encoding="utf-8", errors="replace")
            texts[path] = set(re.findall(r"\w+", text))
        return texts[path]

    names = []
    for name, variant in request["names"]:
        facts = builds.get(variant)
        if facts and not any(name in words_of(path) for path in facts["read"]):
            names.append(name)
    return names


def answer(request):
    builder = Builder(request)
    distinct = {}
    for variant in request["variants"]:
        what = json.dumps([variant[field] for field in ("define", "flags", "sources")])
        distinct.setdefault(what, []).append(variant)

    def attempt(variants):
        try:
            return builder.build(variants[0]), ""
        except (BuildError, codegen.CodegenError) as error:
            return None, str(error)

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(attempt, distinct.values()))
    builds, replies = {}, {}
    for variants, (facts, error) in zip(distinct.values(), results):
        for variant in variants:
            reply = {"name": variant["name"], "error": error}
            if facts:
                builds[variant["name"]] = facts
                reply |= {"library": str(builder.cache / facts["library"]), "library_sha256": facts["library_sha256"],
                          "host_sha256": facts["host_sha256"], "ptx": {}}
                rows = facts["archs"].values()
                for pattern in request["ptx"]:
                    reply["ptx"][pattern] = max(
                        sum(1 for line in row["ptx"] if re.search(pattern, line)) for row in rows)
            replies[variant["name"]] = reply
    resources, code = [], []
    for variant in request["variants"]:
        for arch, row in builds.get(variant["name"], {"archs": {}})["archs"].items():
            where = {"variant": variant["name"], "arch": arch}
            resources.append(where | {field: row[field] for field in (
                "registers", "static_smem_bytes", "stack_bytes", "spill_store_bytes",
                "spill_load_bytes")})
            code.append(where | {field: row[field]
                                 for field in ("code_sha256", "ptx_sha256", "opcodes")})
    return {"compiler": builder.version,
            "variants": [replies[variant["name"]] for variant in request["variants"]],
            "unread": unread(request, builder, builds),
            "resources": {"schema_version": codegen.SCHEMA_VERSION, "instances": resources},
            "codegen": {"schema_version": codegen.SCHEMA_VERSION, "disassembler": builder.disassembler_name,
                        "instances": code}}


def main():
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except (BuildError, codegen.CodegenError, OSError) as error:
        print(json.dumps({"error": str(error)}))


if __name__ == "__main__":
    main()
