# SPDX-License-Identifier: Apache-2.0
"""Bugs that are planted in copies of the kernels' sources, to see whether the checks find them.

Each kernel family has a file mutations.toml: [kernels] gives instances of the build short names,
and each [[mutation]] has

    name     unique; begins with the part of the family whose score it counts in
    what     the bug, in a sentence
    file     the source that it is planted in
    old      text that stands there exactly once
    new      what replaces it
    kernel   the instance that is compiled with it
    problem  the problem that must expose it (kernels/sdpa/problem)
    input    the distribution of its inputs; normal where it says none
    race     optional: why it depends on time whether the bug shows, and why it should

    mutants.py list INSTANCES_JSON               a line for each: name, set and source of the
                                                 instance, mutated file, table
    mutants.py table INSTANCES_JSON FOLDER       writes mutants.cc and mutant_code.cc
    mutants.py apply NAME FOLDER                 makes FOLDER anew, with nothing but the mutated file
"""

import dataclasses
import json
import pathlib
import shutil
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[4]
SDPA = ROOT / "kernels" / "sdpa"
FAMILIES = ("smem", "mma", "wgmma", "resident")


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    what: str
    file: str
    old: str
    new: str
    kernel: str  # the instance's name
    problem: str
    family: str  # whose mutations.toml it stands in
    input: str = "normal"
    race: str = ""

    @property
    def group(self):
        """What its score counts in: smem's scalar and WMMA kernels stand apart."""
        return self.name.split("_")[0]

    def mutated(self, root=ROOT):
        text = (root / self.file).read_text(encoding="utf-8")
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"mutation {self.name}: its old text stands {found} times in "
                             f"{self.file}, and should once")
        return text.replace(self.old, self.new)


def load():
    mutations = []
    for family in FAMILIES:
        tables = tomllib.loads((SDPA / family / "mutations.toml").read_text(encoding="utf-8"))
        mutations += [Mutation(family=family, **each | {"kernel": tables["kernels"][each["kernel"]]})
                      for each in tables["mutation"]]
    return mutations


def instances(path):
    listed = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["instances"]
    return {each["variant"]: each for each in listed}


def quoted(text):
    return json.dumps(text)


def code_table(mutations, known):
    """C++ that lists the mutants; the code of each is embedded by embedding()."""
    text = ['#include "tests/kernels/sdpa/mutations/mutants.h"', ""]
    text += [f'extern "C" const unsigned char mutant_{m.name}_code[];' for m in mutations]
    text += ["", "namespace warpledger::sdpa {", "namespace {", "", "KernelCode codes[] = {"]
    text += [f"    {{{quoted(known[m.kernel]['symbol'])}, mutant_{m.name}_code}},"
             for m in mutations]
    text += ["};", "", "const Mutant kMutants[] = {"]
    text += [f"    {{{', '.join(map(quoted, (m.name, m.what, m.kernel, m.problem, m.input, m.race)))}, "
             f"&codes[{i}]}}," for i, m in enumerate(mutations)]
    text += ["};", "", "}  // namespace", "",
             "std::span<const Mutant> Mutants() { return kMutants; }", "",
             "}  // namespace warpledger::sdpa", ""]
    return "\n".join(text)


def embedding(mutations, folder):
    """C++ that embeds the mutants' code, as the generator of instances does with theirs."""
    lines = []
    for m in mutations:
        name = f"mutant_{m.name}_code"
        file = folder / f"{m.name}.fatbin"
        lines.append(f'asm(".pushsection .nv_fatbin,\\"a\\",@progbits\\n.balign 16\\n'
                     f'.globl {name}\\n{name}:\\n.incbin \\"{file}\\"\\n.popsection");')
    return "\n".join([*lines, ""])


def write_if_changed(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main(command, *arguments):
    mutations = load()
    if command == "list":
        known = instances(arguments[0])
        # A build of some designs has some of the instances.
        for each in mutations:
            if each.kernel in known:
                print(each.name, known[each.kernel]["set"], known[each.kernel]["source"], each.file,
                      f"kernels/sdpa/{each.family}/mutations.toml")
    elif command == "table":
        known = instances(arguments[0])
        folder = pathlib.Path(arguments[1])
        built = [each for each in mutations if each.kernel in known]
        write_if_changed(folder / "mutants.cc", code_table(built, known))
        write_if_changed(folder / "mutant_code.cc", embedding(built, folder))
    elif command == "apply":
        name, folder = arguments
        mutation = {each.name: each for each in mutations}[name]
        shutil.rmtree(folder, ignore_errors=True)  # a bug that moved to another file left the old one
        to = pathlib.Path(folder) / mutation.file
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(mutation.mutated(), encoding="utf-8")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
