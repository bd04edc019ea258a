# SPDX-License-Identifier: Apache-2.0
"""What must hold of the generated machine code, as functions that return failures.

Each check returns a list of sentences, empty when all is well. A sentence names
the instance and the architecture, what was found and what was expected.
codegen_test.py applies the checks to a build.
"""

import dataclasses
import json
import pathlib
import re

import collect_codegen


@dataclasses.dataclass(frozen=True)
class Instance:
    """One kernel instance as compiled for one architecture."""

    variant: str
    arch: str
    registers: int
    static_smem_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    code_sha256: str
    opcodes: dict
    ptx: tuple  # lines, without comments

    def __str__(self):
        return f"{self.variant} on {self.arch}"

    def ptx_count(self, pattern):
        return sum(1 for line in self.ptx if re.search(pattern, line))

    def ptx_count_in_loops(self, pattern):
        return sum(1 for line in lines_in_loops(self.ptx) if re.search(pattern, line))

    def sass_count(self, pattern):
        return sum(count for opcode, count in self.opcodes.items() if re.search(pattern, opcode))


@dataclasses.dataclass(frozen=True)
class Step:
    """A toggle, and the two variants whose difference it is."""

    toggle: dict  # its row of registry.json
    base: str
    candidate: str

    @property
    def between_levels(self):
        """Whether the toggle is on in the base too, at another level."""
        config = self.base.split("@")[0]
        return self.toggle["id"] in (part.split("=")[0] for part in config.split("+"))

    def __str__(self):
        return f"{self.toggle['id']} ({self.base} -> {self.candidate})"


def lines_in_loops(ptx):
    """The lines between a label and a branch back to it, each once."""
    labels = {}
    inside = set()
    for index, line in enumerate(ptx):
        if match := re.match(r"([$\w]+):", line):
            labels[match.group(1)] = index
        elif (match := re.search(r"\bbra(?:\.uni)?\s+([$\w]+)", line)) and match.group(1) in labels:
            inside.update(range(labels[match.group(1)], index + 1))
    return [ptx[index] for index in sorted(inside)]


def load_instances(codegen_dir, keep_root, instances_path):
    """Returns ({variant: {arch: Instance}}, name of the disassembler or "")."""
    folder = pathlib.Path(codegen_dir)
    resources = json.loads((folder / "resources.json").read_text(encoding="utf-8"))
    codegen = json.loads((folder / "codegen.json").read_text(encoding="utf-8"))
    code = {(row["variant"], row["arch"]): row for row in codegen["instances"]}
    rows = {(row["variant"], row["arch"]): row for row in resources["instances"]}
    if not rows or set(rows) != set(code):
        raise collect_codegen.CodegenError(
            f"{folder}: resources.json and codegen.json speak of different instances, or of none. "
            "Rebuild.")
    loaded = {}
    folders = collect_codegen.find_keep_folders(keep_root)
    for listed in collect_codegen.load_instances(instances_path):
        variant = listed["variant"]
        keep = collect_codegen.keep_folder_of(listed["source"], folders)
        kernels = collect_codegen.parse_ptxas_log((keep / "ptxas.log").read_text(encoding="utf-8"))
        for arch, cubin_path, _ in collect_codegen.match_archs(keep, kernels):
            ptx = collect_codegen.ptx_of(cubin_path).read_text(encoding="utf-8")
            if (variant, arch) not in rows:
                raise collect_codegen.CodegenError(
                    f"{folder} doesn't speak of {variant} on {arch}. Rebuild.")
            loaded.setdefault(variant, {})[arch] = Instance(
                **rows.pop((variant, arch)), code_sha256=code[variant, arch]["code_sha256"],
                opcodes=code[variant, arch]["opcodes"],
                ptx=tuple(collect_codegen.ptx_lines(ptx)))
    if rows:
        raise collect_codegen.CodegenError(
            f"{folder} speaks of {sorted(rows)[0]}, which {instances_path} doesn't list. Rebuild.")
    return loaded, codegen["disassembler"]


def steps(registry, role):
    """The distinct (toggle, base, candidate) instances of all designs' arms with `role`."""
    toggles = {toggle["id"]: toggle for toggle in registry["toggles"]}
    found = {}
    for design in registry["designs"]:
        arms = {arm["name"]: arm for arm in design["arms"]}
        for arm in design["arms"]:
            if arm["role"] == role:
                for base, candidate in zip(*_aligned(arms[arm["base"]]["instances"],
                                                     arm["instances"])):
                    toggle = toggles[arm["toggle"]]
                    if base == candidate and (toggle.get("launch_side")
                                              or toggle.get("causal_only")):
                        continue  # held to what is launched, which takes a GPU; nothing to mask
                    key = (arm["toggle"], base, candidate)
                    found[key] = Step(toggle, *key[1:])
    return list(found.values())


def _aligned(bases, candidates):
    """Instances of two arms, one per problem: a family that is compiled once for both masks
    stands against each of the two that another has."""
    if len(bases) == len(candidates):
        return bases, candidates
    if 2 * len(bases) == len(candidates):
        return [base for base in bases for _ in range(2)], candidates
    if len(bases) == 2 * len(candidates):
        return bases, [candidate for candidate in candidates for _ in range(2)]
    raise ValueError(f"{bases} and {candidates} don't speak of the same problems")


def load_waivers(path):
    """Names in the file of spill waivers: {name: reason}; empty without a file."""
    path = pathlib.Path(path)
    if not path.exists():
        return {}
    lines = (line.split(None, 1) for line in path.read_text(encoding="utf-8").splitlines()
             if line.strip() and not line.lstrip().startswith("#"))
    return {line[0]: line[1] for line in lines if len(line) == 2}


# --- Checks ------------------------------------------------------------------


def _pairs(step, instances):
    """(base, candidate) of each architecture; raises KeyError for an unknown variant."""
    bases, candidates = instances[step.base], instances[step.candidate]
    # Where only one of them needs Hopper's own target, sm_90 stands against sm_90a.
    archs = [(arch, arch) for arch in bases if arch in candidates] or \
        [(arch, f"{arch}a") for arch in bases if f"{arch}a" in candidates]
    if not archs:
        raise KeyError(f"{step}: no architecture in common")
    for base_arch, candidate_arch in archs:
        yield bases[base_arch], candidates[candidate_arch]


def reach_failures(step, instances):
    """A technique's toggle must change the machine code."""
    return [f"{step}: identical machine code on {base.arch}; the toggle reached nothing."
            for base, candidate in _pairs(step, instances)
            if base.code_sha256 == candidate.code_sha256]


def control_failures(step, instances):
    """A control must not change the machine code."""
    return [f"{step}: the machine code differs on {base.arch}, but a control reaches no code."
            for base, candidate in _pairs(step, instances)
            if base.code_sha256 != candidate.code_sha256]


def _change_failures(step, where, pattern, counted):
    change = step.toggle["evidence"]["change"]
    rules = {"appears": (lambda off, on: off == 0 < on, "none when off and at least one when on"),
             "grows": (lambda off, on: off < on, "more when on than when off"),
             "shrinks": (lambda off, on: off > on, "fewer when on than when off"),
             "vanishes": (lambda off, on: off > 0 == on, "at least one when off and none when on"),
             "differs": (lambda off, on: off != on, "another number when on than when off"),
             "shrinks_in_loops": (lambda off, on: off > on, "fewer in loops when on than when off")}
    if step.between_levels and change in rules:
        # What tells on from off need not tell one on-level from another; that the
        # code differs is reach_failures' business.
        rules[change] = (lambda off, on: on > 0 or change in ("shrinks", "vanishes", "shrinks_in_loops"),
                         "at least one in both")
    if change not in rules:
        return [f"{step}: its evidence promises '{change}'; a technique promises one of "
                f"{', '.join(rules)}."]
    holds, expected = rules[change]
    return [f"{step}: {where} /{pattern}/ on {arch}: {off} when off, {on} when on; expected "
            f"{expected}."
            for arch, off, on in counted if not holds(off, on)]


def ptx_failures(step, instances):
    """The PTX evidence of the registry's row, on every architecture."""
    pattern = step.toggle["evidence"]["ptx"]
    if not pattern:
        return []
    count = (Instance.ptx_count_in_loops
             if step.toggle["evidence"]["change"] == "shrinks_in_loops" else Instance.ptx_count)
    return _change_failures(step, "PTX", pattern, [
        (base.arch, count(base, pattern), count(candidate, pattern))
        for base, candidate in _pairs(step, instances)])


def sass_failures(step, instances):
    """The SASS evidence of the registry's row, on every architecture."""
    pattern = step.toggle["evidence"]["sass"]
    if not pattern:
        return []
    return _change_failures(step, "SASS", pattern, [
        (base.arch, base.sass_count(pattern), candidate.sass_count(pattern))
        for base, candidate in _pairs(step, instances)])


def local_memory_failures(instance):
    """No stack, no spills, no local-memory instruction."""
    failures = [f"{instance}: {key} is {getattr(instance, key)}, expected 0."
                for key in ("stack_bytes", "spill_store_bytes", "spill_load_bytes")
                if getattr(instance, key) != 0]
    local = instance.sass_count(r"^(LDL|STL)\b")
    if local:
        failures.append(f"{instance}: {local} LDL/STL instructions, expected none.")
    return failures


def budget_failures(instance, dynamic_smem_bytes, max_registers, max_smem_bytes):
    """Registers and shared memory, static and dynamic, within a budget, and no spills."""
    failures = []
    if instance.registers > max_registers:
        failures.append(f"{instance}: {instance.registers} registers, at most {max_registers}.")
    smem = instance.static_smem_bytes + dynamic_smem_bytes
    if smem > max_smem_bytes:
        failures.append(f"{instance}: {smem} B of shared memory, at most {max_smem_bytes}.")
    if instance.spill_store_bytes or instance.spill_load_bytes:
        failures.append(f"{instance}: it spills.")
    return failures
