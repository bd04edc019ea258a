// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/replay.h"

#include <algorithm>
#include <cmath>

namespace warpledger::harness {

int PlanLaunches(const ReplayPlan& plan, double kernel_us) {
  const double wanted = kernel_us > 0 ? plan.target_us / kernel_us : plan.max_launches;
  int launches =
      static_cast<int>(std::clamp<double>(std::ceil(wanted), plan.min_launches, plan.max_launches));
  launches = (launches + plan.multiple_of - 1) / plan.multiple_of * plan.multiple_of;
  return launches;
}

}  // namespace warpledger::harness
