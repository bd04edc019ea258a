// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/line_fit.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace warpledger::harness {

absl::StatusOr<LineFit> FitLine(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() != y.size() || x.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a line needs as many x as y; there are ", x.size(), " and ", y.size()));
  }
  const double n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  double xx = 0, xy = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  if (xx <= 0) return absl::InvalidArgumentError("a line needs at least two distinct x");
  LineFit fit;
  fit.slope = xy / xx;
  fit.intercept = mean_y - fit.slope * mean_x;
  fit.r2 = yy > 0 ? xy * xy / (xx * yy) : 1;
  return fit;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace warpledger::harness
