// SPDX-License-Identifier: Apache-2.0
// Hardware counters of kernels: which are read, how Nsight Compute is asked,
// what its CSV says, and the record of it.
//
// A profile record is a folder with profile.json (written once) and
// profiles.jsonl (one line per variant and shape, append-only); reports/RECORD.md
// has the schema. Counters explain times, they are none: a profiler replays the
// launch once per group of counters, so the times of a report come from a record
// of samples of the very same machine code.
//
// Contract: ParseNcuCsv takes everything that ncu printed, its messages included,
// and returns its launches or one reason. A counter that the GPU lacks or that
// ncu calls "n/a" is absent, never 0. Reading never repairs. Deterministic.
//
// Errors: InvalidArgument for output that holds no profile, with what ncu said;
// DataLoss for a damaged record ("profiles.jsonl:3: …"); FailedPrecondition for a
// newer schema; NotFound for no record.
//
//   absl::StatusOr<std::vector<KernelProfile>> launches = ParseNcuCsv(output);
//   double cycles = Longest(*launches).metrics.at("sm__cycles_elapsed.max").value;

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/record/record.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

inline constexpr int kProfileSchemaVersion = 1;
inline constexpr char kProfileFile[] = "profile.json";
inline constexpr char kProfilesFile[] = "profiles.jsonl";

// The declared set, by ncu's names. What a GPU does not have is left out of the
// call: ncu refuses the whole call for one name that it does not know.
std::vector<std::string> ProfileMetrics();

// Of `wanted`, those that `ncu --query-metrics` lists for this GPU. Attributes of
// the device and of the launch are always there and never listed.
std::vector<std::string> KnownMetrics(const std::vector<std::string>& wanted,
                                      std::string_view query_output);

// The call that profiles `program`'s arguments: its kernels between cudaProfilerStart() and
// cudaProfilerStop().
std::vector<std::string> NcuCall(const std::string& ncu, const std::vector<std::string>& metrics,
                                 const std::vector<std::string>& program);

struct MetricValue {
  std::string unit;
  double value = 0;

  DESCRIBE_FIELDS(value, unit)
  friend bool operator==(const MetricValue&, const MetricValue&) = default;
};

// One launch, as ncu saw it.
struct KernelProfile {
  std::string kernel;
  std::string grid;  // "(64, 1, 1)"
  std::string block;
  std::string compute_capability;
  std::string gpu;  // empty when ncu does not say
  std::map<std::string, MetricValue> metrics;

  void Visit(auto& f) {
    FIELDS(kernel, grid, block, compute_capability, gpu);
    f("metrics", metrics, "by ncu's names; a counter that the GPU lacks is absent");
  }
  friend bool operator==(const KernelProfile&, const KernelProfile&) = default;
};

// At least one, in the order of launches.
absl::StatusOr<std::vector<KernelProfile>> ParseNcuCsv(std::string_view output);
// By gpu__time_duration; the first of several, or where ncu gives no times.
const KernelProfile& Longest(const std::vector<KernelProfile>& launches);

// A line of profiles.jsonl.
struct Profile {
  std::string variant;
  std::string config;
  std::string shape;
  std::string code_sha256;  // of the kernel on this GPU's architecture; empty: unknown
  std::string reason;       // why there is no profile; empty: there is
  int kernels = 0;          // of the call, where these are counters of its longest; 0: of its only
  KernelProfile launch;

  void Visit(auto& f) {
    FIELDS(variant, config, shape);
    f("code_sha256", code_sha256, "that of codegen.json; empty: the build had none");
    f("reason", reason, "why there is no profile; empty: there is");
    f("kernels", kernels, kOnlyWhereSet, "of the call, where the counters are of its longest");
    launch.Visit(f);
  }
  friend bool operator==(const Profile&, const Profile&) = default;
};

struct ProfileInfo {
  int schema_version = kProfileSchemaVersion;
  std::string run_id;
  std::string created_utc;
  std::string subject;  // empty: kFirstSubject
  SubjectDefinition definition;
  std::vector<std::string> argv;
  std::string ncu;  // its version
  uint64_t seed = 0;
  std::vector<ShapeInfo> shapes;
  std::vector<std::string> metrics;
  std::string registry_sha256;
  std::string kernel_source_sha256;

  void Visit(auto& f) {
    f("schema_version", schema_version, SchemaUpTo{kProfileSchemaVersion});
    FIELDS(run_id, created_utc);
    f("subject", subject, kOnlyWhereSet, "as in run.json");
    f("definition", definition, kOnlyWhereSet, "as in run.json");
    FIELDS(argv);
    f("ncu", ncu, "its version");
    f("seed", seed);
    f("shapes", shapes, "as in run.json");
    f("metrics", metrics, "ncu's names");
    FIELDS(registry_sha256, kernel_source_sha256);
  }
  friend bool operator==(const ProfileInfo&, const ProfileInfo&) = default;
};

struct ProfileRecord {
  ProfileInfo info;
  std::vector<Profile> profiles;  // the last line of each variant and shape
};

// True when `dir` holds a profile.json.
bool HasProfiles(const std::string& path);
absl::StatusOr<ProfileRecord> LoadProfiles(const std::string& path);
// Adds a line; the file is replaced as a whole, so a kill leaves all or nothing.
absl::Status AppendProfile(const std::string& dir, const Profile& profile);

}  // namespace warpledger::ablations
