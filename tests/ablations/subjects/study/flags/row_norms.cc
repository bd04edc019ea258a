// SPDX-License-Identifier: Apache-2.0
// y[r] = sum of x[r][c]^2, with flags that help, do nothing or break it.

#include <warpledger/study.h>

#ifndef EXTRA_ROWS
#define EXTRA_ROWS 0
#endif
#ifndef START
#define START 0.0f
#endif

// Looks like a layout, and is the identity either way.
#ifdef USE_SWIZZLE
#define COLUMN(c) ((c) ^ 0)
#else
#define COLUMN(c) (c)
#endif

namespace {

float Norm(const float* x, long long cols) {
#ifdef EIGHT_SUMS
  float sums[8] = {};
  for (long long c = 0; c < cols; c += 8) {
    for (int k = 0; k < 8; ++k) sums[k] += x[c + k] * x[c + k];
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
#else
  float sum = START;
  for (long long c = 0; c < cols; ++c) sum += x[COLUMN(c)] * x[COLUMN(c)];
  return sum;
#endif
}

}  // namespace

extern "C" int warpledger_call(const WarpledgerCall* call) {
  const long long rows = warpledger_parameter(call, "rows") + EXTRA_ROWS;
  const long long stride = warpledger_parameter(call, "cols");
  long long cols = stride;
  const float* x = static_cast<const float*>(call->inputs[0]);
  float* y = static_cast<float*>(call->outputs[0]);
#ifdef FAILS
  return 7;
#endif
#ifdef TRAPS
  __builtin_trap();
#endif
#ifdef HANGS
  for (volatile int i = 0;; i = i + 1) continue;
#endif
#ifdef SKIP_LAST
  --cols;
#endif
  for (int pass = 0; pass < PASSES; ++pass) {
    for (long long r = 0; r < rows; ++r) y[r] = Norm(x + r * stride, cols);
    asm volatile("" ::: "memory");
  }
#ifdef IN_PLACE
  const_cast<float*>(x)[0] *= x[0];
#endif
  return 0;
}
