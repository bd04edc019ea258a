# SPDX-License-Identifier: Apache-2.0
"""Compiles a study's variants and says what machine code they are.

Reads a request (build.h's BuildRequest) as JSON on standard input and writes a reply (BuildReply) as
one line of JSON to standard output. Each distinct set of definitions, flags and sources is compiled
once, several at a time, into the study's cache: `builds/SIGNATURE/` has the library, and the signature
is of the compiler, the command and the content of every file that it read, libraries that it is linked
with among them. A build is there whole or not at all. Among the sources, objects and archives (.o, .a) are
linked in as they are; a library that was built before (.so) stands alone, and is copied. Where there is no compiler, builds that were made elsewhere and came with the folder serve,
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
FACTS = 2  # what a build's facts mean; those that an older program left are found again
HEADERS = "<warpledger>/"  # files of the program's own, by name
ENTRIES = ("warpledger_call", "warpledger_study_version")
BUILT_BEFORE = re.compile(r"\.(o|a|so(\.\d+)*)$")
IS_LIBRARY = re.compile(r"\.so(\.\d+)*$")


class BuildError(Exception):
    """Why something is not built, in one line."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def run(command, folder=None, scratch=None):
    environment = os.environ | ({"TMPDIR": str(scratch)} if scratch else {})
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, errors="replace", env=environment)
    except OSError as error:
        raise BuildError(f"{command[0]} doesn't start: {error.strerror}") from error


def find_compiler(device):
    """The command that compiles; where to find nvcc, cmake/setup.sh knows too."""
    if device == "cpu":
        try:
            command = shlex.split(os.environ.get("CXX", "")) or ["c++"]
        except ValueError as error:
            raise BuildError(f"CXX is no command: {error}") from error
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
        self.architectures = request["architectures"]
        self.header_folder = pathlib.Path(request["include"]).resolve()
        self.includes = [f"-I{self.header_folder}", f"-I{self.folder}"]
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
            self.flags = self.own_flags()
            return
        self.version = version_of(self.compiler)
        self.flags = self.own_flags()
        self.disassembler = codegen.Disassembler(codegen.find_nvdisasm()) if self.on_gpu else None
        self.disassembler_name = self.disassembler.name if self.on_gpu else "objdump"
        self.write(tools, json.dumps([self.version, self.disassembler_name]))

    def own_flags(self):
        """Those of every study. No symbol is shared between the variants that a process loads."""
        if not self.on_gpu:
            return ["-fPIC"] + ["-fno-gnu-unique"] * ("clang" not in self.version)
        numbers = [arch.removeprefix("sm_") for arch in self.architectures]
        return [*(f"-gencode=arch=compute_{number},code=sm_{number}" for number in numbers),
                "-Xcompiler=-fPIC,-fno-gnu-unique", "-Xptxas=-v"]

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
        key = sha256(json.dumps([FACTS, self.version, flags, variant["sources"],
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
            unique = self.check_entries(part / LIBRARY)
            facts = self.facts_of(part, variant["sources"]) | {"unique": unique}
            hashes = {path: self.hash_of(path) for path in sorted(files)}
            facts["signature"] = sha256(json.dumps([key, hashes]).encode())
            kept = self.cache / "builds" / facts["signature"][:32]
            facts["library"] = str((kept / LIBRARY).relative_to(self.cache))
            facts["library_sha256"] = sha256((part / LIBRARY).read_bytes())
            facts["read"] = [path for path in sorted(self.own(files)) if hashes[path]]
            kept.mkdir(exist_ok=True)
            os.replace(part / LIBRARY, kept / LIBRARY)
        # Of a file that is not found, nobody can say whether it has changed.
        if all(hashes.values()):
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
        for source in sources:
            if not (self.folder / source).is_file():
                raise BuildError(f"there is no source {source}")
        paths = [os.path.normpath(source) for source in sources]
        for i, path in enumerate(paths):
            if path in paths[:i]:
                raise BuildError(f"the source {path} is there twice")
        if any(map(IS_LIBRARY.search, sources)):
            if len(sources) > 1:
                raise BuildError("a library that was built before (.so) stands alone among `sources`")
            shutil.copyfile(self.folder / sources[0], part / LIBRARY)
            return {self.named(sources[0])}
        files, objects = set(), []
        for i, source in enumerate(sources):
            if BUILT_BEFORE.search(source):
                objects.append(source)
                files.add(self.named(source))
                continue
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
            files.update(self.listed(depends))
        linking = [flag for flag in flags if flag.startswith(("-gencode", "-l", "-L"))]
        to_linker = ["-Bsymbolic"]
        depends = part / "linked.d"
        if any(flag.startswith("-l") for flag in linking):
            to_linker.append(f"--dependency-file={depends}")
        linked = run([*self.compiler, "-shared", "-o", str(part / LIBRARY), *objects,
                      *(f"-Xlinker={each}" if self.on_gpu else f"-Wl,{each}" for each in to_linker),
                      *linking], self.folder, scratch=part)  # files that go away again lie there
        if linked.returncode != 0:
            raise BuildError(f"it does not link: {first_error(linked.stderr)}")
        if depends.is_file():
            files.update(self.listed(depends, below=part))
        return files

    def listed(self, depends, below=None):
        """The files that a compiler or a linker says it has read, without what lies below a folder."""
        text = depends.read_text(encoding="utf-8").replace("\\\n", " ").partition("\n\n")[0]
        read = re.split(r"(?<!\\)\s+", text.partition(": ")[2].strip())
        paths = [self.path_of(path) for path in filter(None, read)]
        return {self.named(path) for path in paths if not (below and path.is_relative_to(below))}

    def path_of(self, escaped):
        """nvcc escapes blanks alone, others what make(1) reads too."""
        plain = escaped.replace("\\ ", " ")
        paths = [self.folder / plain.replace("\\#", "#").replace("$$", "$"), self.folder / plain]
        return next(filter(pathlib.Path.is_file, paths), paths[0])

    def check_entries(self, library):
        """Its symbols that all libraries of a process share."""
        listed = run(["nm", "-D", "--defined-only", str(library)]).stdout
        defined = {line.split()[-1]: line.split()[-2] for line in listed.splitlines() if line.strip()}
        for entry in ENTRIES:
            if entry not in defined:
                why = ("include <warpledger/study.h>" if entry == ENTRIES[1] else
                       "define it as extern \"C\" int warpledger_call(const WarpledgerCall*)")
                raise BuildError(f"its library has no function {entry}: {why}")
        return sorted(name for name, kind in defined.items() if kind == "u")

    def facts_of(self, part, sources):
        """Machine code and resources by architecture, and what the host's side is."""
        archs, host = {}, []
        for i, source in enumerate(sources):
            keep = part / f"keep{i}"
            before = BUILT_BEFORE.search(source)
            host.append(host_code(self.folder / source if before else keep / "object.o"))
            if not self.on_gpu:
                add_host_kernel(archs, host[-1])
                continue
            if before:
                self.add_kernels_built_before(archs, self.folder / source, keep)
                continue
            by_arch = kernels_by_arch((keep / "log").read_text(encoding="utf-8"))
            if not by_arch:
                continue  # a source without a kernel
            for arch, path, cubin in codegen.match_archs(keep, by_arch):
                self.add_kernels(archs, arch, path, cubin, by_arch[arch])
        host_sha256 = sha256("".join(map(str, host)).encode())
        if not archs:
            # Kernels of libraries alone: what calls them is all that is known of them.
            for arch in self.architectures:
                archs[arch] = empty_row() | {"code_sha256": [host_sha256], "registers": None}
        for row in archs.values():
            row["code_sha256"] = join_hashes(row["code_sha256"])
            row["ptx_sha256"] = join_hashes(row["ptx_sha256"]) if row["ptx_sha256"] else ""
            row["opcodes"] = dict(sorted(row["opcodes"].items()))
        return {"archs": archs, "host_sha256": host_sha256}

    def add_kernels_built_before(self, archs, file, scratch):
        """Those of an object, an archive or a library, for the study's architectures."""
        scratch.mkdir()
        cuobjdump = shutil.which("cuobjdump") or str(pathlib.Path(self.compiler[0]).resolve().with_name("cuobjdump"))
        run([cuobjdump, "--extract-elf", "all", str(file.resolve())], scratch)
        found = set()
        for path in sorted(scratch.glob("*.cubin")):
            arch = re.search(r"(sm_\w+)\.cubin$", path.name)[1]
            found.add(arch)
            cubin = codegen.parse_cubin(path.read_bytes())
            if arch not in self.architectures or not cubin.kernels:
                continue
            row = archs.setdefault(arch, empty_row())
            row["code_sha256"].append(codegen.code_sha256(cubin))
            opcodes = self.disassembler.opcodes(arch, [codegen.code_of(cubin)])[0]
            row["opcodes"].update(opcodes)
            usage = run([cuobjdump, "--dump-resource-usage", str(path)]).stdout
            for kernel in re.findall(r"\bREG:(\d+) STACK:(\d+) SHARED:(\d+)", usage):
                for field, value in zip(("registers", "stack_bytes", "static_smem_bytes"), kernel):
                    row[field] = max(row[field], int(value))
            # ptxas alone knows which of these are spills.
            row["spill_store_bytes"] += local_bytes(opcodes, "STL")
            row["spill_load_bytes"] += local_bytes(opcodes, "LDL")
        if found and not found & set(self.architectures):
            raise BuildError(f"{file.name} has machine code for {', '.join(sorted(found))}, and none of the "
                             f"study's architectures, {', '.join(self.architectures)}")

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


def local_bytes(opcodes, opcode):
    """Bytes that instructions on local memory move: "STL.64" moves 8."""
    widths = [re.search(r"\.(8|16|64|128)\b|$", each)[1] for each in opcodes
              if each.partition(".")[0] == opcode]
    return sum(int(width or 32) // 8 for width in widths)


def join_hashes(hashes):
    return hashes[0] if len(hashes) == 1 else sha256(" ".join(hashes).encode())


def first_error(text):
    """The line of a compiler's output that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if re.search(r"\b(error|undefined|multiple definition|fatal)\b", line)),
                lines[-1] if lines else "without a word")


def kernels_by_arch(log):
    """What `ptxas -v` says of each kernel: {arch: [row of collect_codegen.parse_ptxas_log]}."""
    by_arch = {}
    for part in re.split(r"(?m)^(?=.*Compiling entry function)", log)[1:]:
        for arch, row in codegen.parse_ptxas_log(part).items():
            by_arch.setdefault(arch, []).append(row)
    return by_arch


# An instruction, or a relocation below it: what it refers to.
_HOST_INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:(?:\t| )(.*)$", re.MULTILINE)
_CONSTANTS = re.compile(r"\.(rodata|data|tdata)(\.|$)")  # the sections
_LOCAL_LABEL = re.compile(r"^(\w+) .* (\S+)\t\w+ +(\.L\w+)$", re.MULTILINE)


def host_code(object_file):
    """The host's instructions without their addresses, with what they refer to, and its constants."""
    def objdump(*options):
        return run(["objdump", *options, str(object_file)]).stdout

    # A label's number may be another one where the code is the same.
    places = {label: f"{section}+{at}" for at, section, label in _LOCAL_LABEL.findall(objdump("-t"))}

    def placed(line):
        return re.sub(r"\.L\w+", lambda label: places.get(label[0], label[0]), line)

    instructions = _HOST_INSTRUCTION.findall(objdump("-d", "-r", "--no-show-raw-insn"))
    sections = re.findall(r"(?m)^ +\d+ (\S+) ", objdump("-h"))
    wanted = [f"--section={each}" for each in dict.fromkeys(sections) if _CONSTANTS.match(each)]
    constants = objdump("-s", "-r", *wanted).splitlines() if wanted else []
    # Others name the file.
    constants = [line for line in constants if line.startswith((" ", "0", "Contents", "RELOCATION"))]
    return [[placed(line) for line in instructions], [placed(line) for line in constants]]


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
            text = "" if BUILT_BEFORE.search(path) else builder.file_of(path).read_text(
                encoding="utf-8", errors="replace")
            texts[path] = set(re.findall(r"\w+", text))
        return texts[path]

    names = []
    for name, variant in request["names"]:
        facts = builds.get(variant)
        if facts and not any(name in words_of(path) for path in facts["read"]):
            names.append(name)
    return names


def why_not_beside(facts, shared, name):
    """Why a library can't be loaded into one process with those before it. `shared`: {symbol: (library,
    its variant)}, so far."""
    for symbol in facts.get("unique", []):
        library, other = shared.setdefault(symbol, (facts["library"], name))
        if library != facts["library"]:
            return (f"a process has one {symbol} for it and for variant '{other}', so that one would run the "
                    "other's: compile both with -fno-gnu-unique (nvcc: -Xcompiler=-fno-gnu-unique)")
    return ""


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
    builds, replies, shared = {}, {}, {}
    for variants, (facts, why_not) in zip(distinct.values(), results):
        error = why_not or why_not_beside(facts, shared, variants[0]["name"])
        for variant in variants:
            reply = {"name": variant["name"], "error": error}
            if not error:
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
            if row["registers"] is not None:
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
