// SPDX-License-Identifier: Apache-2.0
// A ratchet on resources, which needs no GPU: registers, spills, stack and shared
// memory of a build's kernels may not grow over a baseline's, per instance and
// architecture. Machine code that changed is listed, never failed.
//
// Contract
// - An instance is one printed configuration on one architecture. Architectures
//   that the build was not made for are left out and named, and so is a configuration
//   where the build has it for other architectures alone; one that the build has for
//   none is GONE, and can't be compared.
// - Shared memory is static plus dynamic where both sides know the dynamic part,
//   static alone otherwise.
// - Growth may be waived by name, with a limit and a reason. A waiver that
//   nothing needs any more is reported, so that it goes away.
// - More of a resource is not always slower; the ratchet makes somebody say so.
//
//   Ratchet ratchet = RunRatchet(baseline, build, waivers);
//   std::fputs(RatchetText(ratchet).c_str(), stdout);
//   return ratchet.exit;

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/base/json_fields.h"
#include "ablations/record/record.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

inline constexpr int kRatchetHolds = 0;
inline constexpr int kRatchetGrew = 1;
inline constexpr int kRatchetNotCompared = 3;

// What one side knows of its kernels.
struct BuildFacts {
  std::string name;  // run id, file or "this build"
  std::vector<InstanceResources> resources;
  std::map<std::string, int64_t> dynamic_smem_bytes;  // by configuration, where known
  std::optional<Codegen> codegen;
  // Empty where unknown. Other compilers give other resources from one source.
  std::string nvcc;
  std::string cuda_flags;
};

// `path` is a record's folder or a resources.json. Fails with NotFound when there
// are no resources.
absl::StatusOr<BuildFacts> LoadBaselineFacts(const std::string& path);

// One line "CONFIG ARCH RESOURCE LIMIT REASON…" of a file of waivers; ARCH may be
// "*". Empty lines and lines that start with # are skipped.
struct Waiver {
  std::string config;
  std::string arch;
  std::string resource;  // registers, spill_bytes, stack_bytes or smem_bytes
  int64_t limit = 0;
  std::string reason;
};
// InvalidArgument names the line, which may lack a reason or name no resource.
absl::StatusOr<std::vector<Waiver>> ParseWaivers(std::string_view text);

struct ResourceChange {
  std::string config;
  std::string arch;
  std::string resource;  // registers, spill_bytes, stack_bytes or smem_bytes
  int64_t before = 0;
  int64_t now = 0;
  std::string waived;  // the waiver's reason

  DESCRIBE_FIELDS(config, arch, resource, before, now, waived)
};

struct Ratchet {
  std::string baseline;
  std::string build;
  std::string toolchain_note;  // empty when both sides were compiled alike
  int compared = 0;            // instances
  std::vector<ResourceChange> grew;
  std::vector<ResourceChange> shrank;
  std::vector<std::string> code_changed;  // "CONFIG on ARCH"
  int code_compared = 0;
  std::vector<std::string> gone;
  std::vector<std::string> added;
  std::vector<std::string> archs_left_out;
  std::vector<std::string> instances_left_out;  // "CONFIG on ARCH", of other architectures
  std::vector<std::string> idle_waivers;
  int exit = kRatchetHolds;

  void Visit(auto& f) {
    VisitSchema(f, kSchemaVersion);
    FIELDS(baseline, build, toolchain_note, exit, compared, grew, shrank, code_compared,
           code_changed, gone, added, archs_left_out, instances_left_out, idle_waivers);
  }
};

Ratchet RunRatchet(const BuildFacts& baseline, const BuildFacts& build,
                   const std::vector<Waiver>& waivers);

std::string RatchetText(const Ratchet& ratchet);

}  // namespace warpledger::ablations
