// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/flags.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, format, "text", "text or json");
ABSL_FLAG(std::string, variant, "",
          "a variant: an arm of a design (ladder:wmma_pv) or toggles joined by + "
          "(kv_tiling+warp_shuffle)");
ABSL_FLAG(std::string, variants, "all", "variants, comma-separated, or all");
ABSL_FLAG(std::string, shapes, "ladder",
          "shapes, comma-separated; 'ladder' for the design's own, 'all' for every one");
ABSL_FLAG(std::string, shape, "mission_b", "the one shape to calibrate on");
ABSL_FLAG(int, aa_pairs, 30, "pairs of identical arms in each block");
ABSL_FLAG(int, aa_family, 2,
          "pairs of identical arms that are judged as one family; 2 as a run's controls are");
ABSL_FLAG(int, groups, 10,
          "how often the processes of a trial are started: each group is one trial of every pair");
ABSL_FLAG(std::string, plants, "0.5%x4,1%x4,2%x10,5%x3",
          "planted slow-downs, each with the number of its arms in a block");
ABSL_FLAG(std::string, inputs, "all",
          "input distributions, comma-separated: normal, outliers, large_logits, constant; or all");
ABSL_FLAG(std::string, known, "",
          "a file of SHA-256 hashes, one a line: machine code that is left out of the checks");
ABSL_FLAG(std::string, shard, "1/1",
          "K/N: only the K-th of N parts of the pairs of a variant and a shape, for N processes");
ABSL_FLAG(int, seeds, 3, "seeds per shape and input distribution");
ABSL_FLAG(
    std::string, design, "ladder",
    "the design to measure; also factorial:A,B[@C,D]: every combination of the toggles A and B, "
    "with C and D always on; fractional:A,B,C,D[@E]: a fraction of that; sweep:A[@B]: its levels");
ABSL_FLAG(std::string, out, "", "where the output goes");
ABSL_FLAG(std::string, record, "", "the record: its directory or its pack");
ABSL_FLAG(bool, keep, false, "leave the folder where it is");
ABSL_FLAG(bool, unfinished, false, "pack a record that lacks blocks, as it is");
ABSL_FLAG(std::string, a, "", "the first record's directory: the base of every ratio");
ABSL_FLAG(std::string, b, "", "the second record's directory");
ABSL_FLAG(std::string, baseline, "",
          "what to hold against: a record's directory; for ratchet also a resources.json");
ABSL_FLAG(double, tolerance, 0.02, "largest slow-down that is let through, as a fraction");
ABSL_FLAG(bool, allow_other_gpu, false,
          "compare records of different GPUs; their difference then counts as the kernels'");
ABSL_FLAG(std::string, junit, "", "also write JUnit XML here, one test case per variant and shape");
ABSL_FLAG(std::string, markdown, "", "also write a summary for a pull request here");
ABSL_FLAG(std::string, waivers, "", "file of growths that are let through, each with its reason");
ABSL_FLAG(std::string, filter, ".",
          "regular expression of the cases to run, as Google Benchmark's filter; with a '-' in "
          "front, of those to leave out");
ABSL_FLAG(int, micro_processes, 3, "processes, one after another, each with all cases");
ABSL_FLAG(int, repetitions, 3, "repetitions of each case in a process");
ABSL_FLAG(
    int, processes, 5,
    "worker processes, one after another; with 5 the intervals of verdicts are about a third as "
    "wide as with 3 (reports/decisions/0002)");
ABSL_FLAG(int, blocks, 24, "blocks per process and shape; a block times every arm once");
ABSL_FLAG(uint64_t, seed, 1, "seed of inputs and orders");
ABSL_FLAG(double, replay_us, 1000, "wanted length of one graph replay, in microseconds");
ABSL_FLAG(int, max_launches, 256, "most launches in one graph replay");
ABSL_FLAG(
    bool, dry_run, false,
    "only say how many samples the run takes, about how long, and what the record holds; of a "
    "check, how many checks it is");
ABSL_FLAG(std::string, peers, "auto",
          "auto: time PyTorch's SDPA backends too where PyTorch is found; or which of "
          "flash,cudnn,efficient,math; off: none");
ABSL_FLAG(std::string, python, "",
          "Python interpreter for peers and plots; default: $WARPLEDGER_PYTHON, else python3");
ABSL_FLAG(int, silence_limit_s, 300,
          "a worker process that prints nothing for so many seconds is stopped");
ABSL_FLAG(int, arm_limit_s, 60,
          "an arm that gives no answer for so many seconds is BROKEN, and the run goes on without");
ABSL_FLAG(std::string, cache, "warm",
          "warm: inputs stay in the L2 from launch to launch; cold: launches rotate over so many "
          "input sets that the L2 has forgotten them");
ABSL_FLAG(std::string, stop, "off",
          "off, or ci:1%: end on a shape at one of a few planned looks once every interval there "
          "is within 1% of its ratio; verdicts pay for the looks (reports/decisions/0012)");
ABSL_FLAG(std::string, plant, "",
          "for tests of the harness: FAULT@ARM[@SHAPE],…, with the faults trap, spin, "
          "write_outside, write_unmapped; the record says so");
ABSL_FLAG(bool, plots, true, "draw the figures too");
ABSL_FLAG(std::string, summary, "", "also write here what `judge` writes");
ABSL_FLAG(std::string, readme, "", "also renew the generated section of this README");
ABSL_FLAG(std::string, readme_pictures, "",
          "the pictures' folder as the README names it; default: --out");
ABSL_FLAG(std::string, ncu, "",
          "Nsight Compute's program; default: ncu on PATH, else the CUDA toolkit's");
ABSL_FLAG(int, max_seq, 16384, "the largest number of keys");
ABSL_FLAG(std::string, dtype, "fp16",
          "of Q, K, V and the output: fp16 or bf16. NumPy has no bf16: the arrays are then fp32, "
          "rounded to bf16 on their way in, and the output is exact");
ABSL_FLAG(std::string, q, "", "Q: .npy, (batch, heads_q, seq_q, head_dim), fp16; fp32 with bf16");
ABSL_FLAG(std::string, k, "", "K: .npy, (batch, heads_kv, seq_kv, head_dim), as Q");
ABSL_FLAG(std::string, v, "", "V: .npy, (batch, heads_kv, seq_kv, head_dim), as Q");
ABSL_FLAG(std::string, lse, "", "also write the log-sum-exp here: (batch, heads_q, seq_q) fp32");
ABSL_FLAG(bool, causal, false, "causal mask, aligned to the bottom right");
