// SPDX-License-Identifier: Apache-2.0
// Every flag of `warpledger`; command.cc says which command takes which.

#ifndef WARPLEDGER_ABLATIONS_CLI_FLAGS_H_
#define WARPLEDGER_ABLATIONS_CLI_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/flags/declare.h"

ABSL_DECLARE_FLAG(std::string, format);
ABSL_DECLARE_FLAG(std::string, variant);
ABSL_DECLARE_FLAG(std::string, variants);
ABSL_DECLARE_FLAG(std::string, shapes);
ABSL_DECLARE_FLAG(std::string, shape);
ABSL_DECLARE_FLAG(int, aa_family);
ABSL_DECLARE_FLAG(int, aa_pairs);
ABSL_DECLARE_FLAG(int, groups);
ABSL_DECLARE_FLAG(std::string, plants);
ABSL_DECLARE_FLAG(std::string, inputs);
ABSL_DECLARE_FLAG(std::string, known);
ABSL_DECLARE_FLAG(std::string, shard);
ABSL_DECLARE_FLAG(int, seeds);
ABSL_DECLARE_FLAG(std::string, design);
ABSL_DECLARE_FLAG(std::string, out);
ABSL_DECLARE_FLAG(std::string, record);
ABSL_DECLARE_FLAG(std::string, a);
ABSL_DECLARE_FLAG(std::string, b);
ABSL_DECLARE_FLAG(std::string, baseline);
ABSL_DECLARE_FLAG(double, tolerance);
ABSL_DECLARE_FLAG(bool, allow_other_gpu);
ABSL_DECLARE_FLAG(std::string, junit);
ABSL_DECLARE_FLAG(std::string, markdown);
ABSL_DECLARE_FLAG(std::string, waivers);
ABSL_DECLARE_FLAG(int, processes);
ABSL_DECLARE_FLAG(std::string, filter);
ABSL_DECLARE_FLAG(int, micro_processes);
ABSL_DECLARE_FLAG(int, repetitions);
ABSL_DECLARE_FLAG(int, blocks);
ABSL_DECLARE_FLAG(uint64_t, seed);
ABSL_DECLARE_FLAG(double, replay_us);
ABSL_DECLARE_FLAG(int, max_launches);
ABSL_DECLARE_FLAG(bool, dry_run);
ABSL_DECLARE_FLAG(std::string, peers);
ABSL_DECLARE_FLAG(std::string, python);
ABSL_DECLARE_FLAG(int, silence_limit_s);
ABSL_DECLARE_FLAG(int, arm_limit_s);
ABSL_DECLARE_FLAG(std::string, cache);
ABSL_DECLARE_FLAG(std::string, plant);
ABSL_DECLARE_FLAG(std::string, stop);
ABSL_DECLARE_FLAG(bool, keep);
ABSL_DECLARE_FLAG(bool, unfinished);
ABSL_DECLARE_FLAG(bool, plots);
ABSL_DECLARE_FLAG(std::string, summary);
ABSL_DECLARE_FLAG(std::string, readme);
ABSL_DECLARE_FLAG(std::string, readme_pictures);
ABSL_DECLARE_FLAG(std::string, ncu);
ABSL_DECLARE_FLAG(int, max_seq);
ABSL_DECLARE_FLAG(std::string, dtype);
ABSL_DECLARE_FLAG(std::string, q);
ABSL_DECLARE_FLAG(std::string, k);
ABSL_DECLARE_FLAG(std::string, v);
ABSL_DECLARE_FLAG(std::string, lse);
ABSL_DECLARE_FLAG(bool, causal);

#endif  // WARPLEDGER_ABLATIONS_CLI_FLAGS_H_
