#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where ptxas puts the wait for P V: ahead of the exponentials that are to run beside it, or behind.

  wait_order.py [--build build] [PATTERN…]   of each overlapping wgmma instance that a pattern is in

A step starts S' = Q K^T, then P V of the tile before, waits for the first and
then for the second. What stands between these waits runs beside P V; what stands
behind the second does not, wherever PTX has it. Needs nvdisasm; no GPU.

Exit codes: 0 said; 1 there is no such instance, or no nvdisasm; 2 the build can't be read.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))

import collect_codegen  # noqa: E402 (the path comes first)

EXP = "MUFU.EX2"


def _is_product(opcode):
    return opcode.startswith(("HGMMA", "QGMMA"))


def steps(opcodes):
    """[(exponentials between the two waits of a step, those behind the second)] of a kernel.

    opcodes: of its instructions, in program order
    """
    found, groups, open_group, waits, between, behind = [], 0, False, 0, 0, 0

    def close():
        if waits == 2:
            found.append((between, behind))

    for opcode in opcodes:
        if opcode.startswith("WARPGROUP.ARRIVE"):
            if waits:  # the next step's first product
                close()
                groups, waits, between, behind = 0, 0, 0, 0
            open_group = True
        elif _is_product(opcode):
            groups += open_group
            open_group = False
        elif opcode.startswith("WARPGROUP.DEPBAR"):
            if groups == 2:
                waits += 1
            else:
                groups = 0
        elif opcode.startswith(EXP):
            between += waits == 1
            behind += waits == 2
    close()
    return found


def has_nvdisasm():
    return bool(collect_codegen.find_nvdisasm())


def of_build(build, chosen):
    """{variant: steps} of the instances in a build folder whose name `chosen` accepts."""
    build = pathlib.Path(build)
    disassembler = collect_codegen.Disassembler(collect_codegen.find_nvdisasm())
    if not disassembler.name:
        return {}
    instances = collect_codegen.load_instances(build / "generated" / "instances" / "instances.json")
    folders = collect_codegen.find_keep_folders(build / "generated")
    variants, archs, codes = [], [], []
    for instance in filter(lambda instance: chosen(instance["variant"]), instances):
        keep = collect_codegen.keep_folder_of(instance["source"], folders)
        for path in sorted(keep.glob("*.cubin")):
            cubin = collect_codegen.parse_cubin(path.read_bytes())
            variants.append(instance["variant"])
            archs.append("sm_90a")  # wgmma exists there alone
            codes.append(collect_codegen.code_of(cubin))
    found = collect_codegen.opcodes_of_all(archs, codes, disassembler)
    return {variant: steps(opcodes) for variant, opcodes in zip(variants, found)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    args = parser.parse_args()

    def chosen(name):
        return "softmax_overlap" in name and all(pattern in name for pattern in args.patterns)

    try:
        found = of_build(args.build, chosen)
    except (collect_codegen.CodegenError, OSError, json.JSONDecodeError) as error:
        print(f"wait_order.py: {error}", file=sys.stderr)
        return 2
    for variant, counts in found.items():
        print(variant, " ".join(f"{between}+{behind}" for between, behind in counts))
    if not found:
        print("wait_order.py: no nvdisasm, or no overlapping instance of that name in "
              f"{args.build}.", file=sys.stderr)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
