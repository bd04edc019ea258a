// SPDX-License-Identifier: Apache-2.0
// The summary of a record of profiles: counters of kernels, beside the times and ceilings that
// explain them. As summary.h; only its page and its pictures read it.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ablations/record/profile.h"
#include "ablations/summary/parts.h"

namespace warpledger::summary {

struct ProfiledGpu {
  std::string name;
  std::string slug;
  double sm_count = 0;
  double max_sm_clock_mhz = 0;

  DESCRIBE_FIELDS(name, slug, sm_count, max_sm_clock_mhz)
};

// A line of the record with the time of the same machine code.
struct TimedProfile : ablations::Profile {
  Estimate p50_us;
  std::optional<std::string> timed_in;  // the run whose time it is
  std::optional<std::string> roof;      // its arithmetic's ceiling; empty: unknown

  void Visit(auto& f) {
    Profile::Visit(f);
    p50_us.VisitAs(f, "p50_us", "ci_low_us", "ci_high_us");
    FIELDS(timed_in, roof);
  }
};

// Two profiled variants that are one toggle apart.
struct ProfiledStep {
  std::string toggle;
  std::string base;
  std::string candidate;

  DESCRIBE_FIELDS(toggle, base, candidate)
};

struct Ceiling {
  std::string name;
  double per_s = 0;
  std::string of;  // "flop" or "bytes"
  std::string micro;
  std::string run;

  DESCRIBE_FIELDS(name, per_s, of, micro, run)
};

struct ProfileSummary {
  std::string kind = "profile";
  ProfiledGpu gpu;
  ablations::ProfileInfo provenance;
  std::vector<TimedProfile> profiles;
  std::vector<ProfiledStep> steps;
  std::vector<Ceiling> ceilings;
  std::vector<std::string> skipped;  // what lies beside the record and can't be read

  void Visit(auto& f) {
    ablations::VisitSchema(f, ablations::kProfileSchemaVersion);
    FIELDS(kind, gpu, provenance);
    f("shapes", provenance.shapes);
    FIELDS(profiles, steps, ceilings, skipped);
  }
};

}  // namespace warpledger::summary
