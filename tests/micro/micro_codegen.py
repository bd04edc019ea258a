# SPDX-License-Identifier: Apache-2.0
"""Whether the kernels of microbenchmarks hold the machine code that they must.

Pure functions over what the compile left (cmake/instance_launcher.sh's keep
folders) and over the program's own list of cases (warpledger_micro
--warpledger_list); micro_codegen_test.py applies them to a build.
"""

import dataclasses
import pathlib
import re

import collect_codegen


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One kernel as compiled for one architecture."""

    sass: tuple  # ((opcode or label, rest of the line), ..), empty without a disassembler
    ptx: tuple  # lines, without comments

    def clock_reads(self):
        return [i for i, (_, rest) in enumerate(self.sass) if "SR_CLOCK" in rest]

    def timed(self):
        """What lies between the first and the last clock read, or all where there are not two."""
        reads = self.clock_reads()
        return self.sass[reads[0] + 1:reads[-1]] if len(reads) >= 2 else self.sass

    def looped(self):
        """What of that lies in a loop: from a branch's label, earlier in it, to the branch."""
        timed = self.timed()
        if len(self.clock_reads()) < 2:
            return timed
        labels, in_loop = {}, set()
        for i, (opcode, rest) in enumerate(timed):
            if opcode.startswith(".L_"):
                labels[opcode] = i
            elif (opcode.startswith("BRA") and (target := re.search(r"`\((\.L_\w+)\)", rest))
                  and target.group(1) in labels):
                in_loop.update(range(labels[target.group(1)], i + 1))
        return tuple(timed[i] for i in sorted(in_loop))

    def sass_count(self, pattern, looped=False):
        code = self.looped() if looped else self.timed()
        return sum(1 for opcode, _ in code if re.search(pattern, opcode))

    def ptx_count(self, pattern):
        return sum(1 for line in self.ptx if re.search(pattern, line))


def ptx_of_kernel(text, symbol):
    """The lines of one kernel in a file of PTX; empty when it isn't there."""
    entry = re.search(rf"\.entry {re.escape(symbol)}\(", text)
    if not entry:
        return ()
    end = text.find("\n}", entry.end())
    return tuple(collect_codegen.ptx_lines(text[entry.end():end]))


def load_kernels(keep_root, disassembler):
    """{symbol: {compute capability: Kernel}} of all keep folders under `keep_root`."""
    kernels = {}
    for path in sorted(pathlib.Path(keep_root).rglob("*.keep/*.cubin")):
        cubin = collect_codegen.parse_cubin(path.read_bytes())
        ptx = collect_codegen.ptx_of(path).read_text(encoding="utf-8")
        sass = disassembler.kernels(path)
        for symbol in cubin.kernels:
            kernels.setdefault(symbol, {})[cubin.sm] = Kernel(
                tuple(sass.get(symbol, ())), ptx_of_kernel(ptx, symbol))
    if not kernels:
        raise collect_codegen.CodegenError(
            f"no *.keep/*.cubin under {keep_root}; build warpledger_micro through "
            "cmake/instance_launcher.sh.")
    return kernels


def covers(row, cc):
    return row["min_cc"] <= cc and (row["max_cc"] == 0 or cc <= row["max_cc"])


def count_failures(evidence, where, pattern, count, at_most_count=None):
    """`count` holds what is needed; what there may be at most is counted there too, or apart."""
    if count < evidence["at_least"]:
        return [f"{where}: {count} of /{pattern}/, expected at least {evidence['at_least']}"]
    count = count if at_most_count is None else at_most_count
    if 0 <= evidence["at_most"] < count:
        return [f"{where}: {count} of /{pattern}/, expected at most {evidence['at_most']}"]
    return []


def case_failures(case, kernels):
    """(sentences about what is wrong, number of patterns that were looked for)."""
    failures, checked = [], 0
    for symbol in case["kernels"]:
        if symbol not in kernels:
            failures.append(f"{case['name']}: no cubin holds {symbol}")
            continue
        for cc, kernel in sorted(kernels[symbol].items()):
            if not covers(case, cc):
                continue
            where = f"{case['name']} on sm_{cc}"
            for evidence in case["evidence"]:
                if not covers(evidence, cc):
                    continue
                if evidence["sass"] and kernel.sass:
                    checked += 1
                    # What a case times in cycles must be in its loop: ptxas may move ahead of
                    # it what always gives the same.
                    looped = case["kind"] == "cycles"
                    failures += count_failures(evidence, f"{where}, SASS", evidence["sass"],
                                               kernel.sass_count(evidence["sass"], looped),
                                               kernel.sass_count(evidence["sass"]))
                if evidence["ptx"]:
                    checked += 1
                    failures += count_failures(evidence, f"{where}, PTX", evidence["ptx"],
                                               kernel.ptx_count(evidence["ptx"]))
            if kernel.sass and case["kind"] == "cycles":
                failures += timing_failures(where, kernel)
    return failures, checked


def timing_failures(where, kernel):
    """What must hold of every kernel that is timed in cycles."""
    reads = len(kernel.clock_reads())
    if reads < 2:
        return [f"{where}: reads the clock {reads} times; it needs StartCycles and StopCycles"]
    failures = []
    if kernel.sass_count(r"^(BRA|BRX|JMP)\b") == 0:
        failures.append(f"{where}: no branch between the clock reads, so no timed loop")
    if local := kernel.sass_count(r"^(LDL|STL)\b"):
        failures.append(f"{where}: {local} accesses to local memory between the clock reads")
    return failures
