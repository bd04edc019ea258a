// SPDX-License-Identifier: Apache-2.0
// `warpledger exec`: one variant of SDPA on a user's arrays. Exec() is in exec.cc, or in no_cuda.cc
// in a build without kernels.

#pragma once

#include <string>

#include "ablations/cli/flags.h"
#include "absl/status/statusor.h"

namespace warpledger::cli {

struct ExecFlags : FlagSet {
  Flag<std::string> variant{this, "variant", "", kVariantHelp};
  Flag<std::string> q{this, "q", "",
                      "Q: .npy, (batch, heads_q, seq_q, head_dim), fp16; fp32 with bf16"};
  Flag<std::string> k{this, "k", "", "K: .npy, (batch, heads_kv, seq_kv, head_dim), as Q"};
  Flag<std::string> v{this, "v", "", "V: .npy, (batch, heads_kv, seq_kv, head_dim), as Q"};
  Flag<std::string> out{this, "out", "", kOutHelp};
  Flag<std::string> lse{this, "lse", "",
                        "also write the log-sum-exp here: (batch, heads_q, seq_q) fp32"};
  Flag<bool> causal{this, "causal", false, "causal mask, aligned to the bottom right"};
  Flag<std::string> dtype{
      this, "dtype", "fp16",
      "of Q, K, V and the output: fp16 or bf16. NumPy has no bf16: the arrays are then fp32, "
      "rounded to bf16 on their way in, and the output is exact"};
};

absl::StatusOr<int> Exec(const ExecFlags& flags);

inline Command ExecCommand() {
  return Runs(
      &Exec,
      {.name = "exec",
       .arguments = "--variant=V --q=q.npy --k=k.npy --v=v.npy --out=o.npy [--lse=lse.npy]",
       .summary = "Runs one variant on your own NumPy arrays (needs a GPU)",
       .details = "Softmax scale 1/sqrt(head_dim). Variants that read K and V in 8 bits get them "
                  "quantised first. The output is written only when the run succeeded."});
}

}  // namespace warpledger::cli
