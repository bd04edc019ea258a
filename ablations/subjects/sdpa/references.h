// SPDX-License-Identifier: Apache-2.0
// The references of one set of inputs: one for each way in which kernels read K and V.
//
//   References references(problem, inputs, rows);
//   runner.Check(*instance, 0, references.For(instance->config));

#pragma once

#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include "kernels/sdpa/problem/problem.h"
#include "kernels/sdpa/problem/reference.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/rules/families.h"

namespace warpledger::ablations {

class References {
 public:
  // `inputs` must outlive it. `rows` as ComputeReference takes them.
  References(const sdpa::Problem& problem, const sdpa::Inputs& inputs,
             std::vector<int64_t> rows = {})
      : problem_(problem), inputs_(inputs), rows_(std::move(rows)) {}

  // What a kernel of this configuration is held against; computed at the first use. Where
  // it reads K and V as codes, they are what the codes stand for.
  const sdpa::Reference& For(const sdpa::Config& config) {
    const sdpa::KvStorage storage = sdpa::KvStorageOf(config);
    for (const auto& [of, reference] : found_) {
      if (of == storage) return reference;
    }
    found_.emplace_back(
        storage, storage.quantised
                     ? sdpa::ComputeReference(
                           problem_, sdpa::WithQuantisedKv(problem_, inputs_, storage), rows_)
                     : sdpa::ComputeReference(problem_, inputs_, rows_));
    return found_.back().second;
  }

 private:
  const sdpa::Problem problem_;
  const sdpa::Inputs& inputs_;
  const std::vector<int64_t> rows_;
  std::list<std::pair<sdpa::KvStorage, sdpa::Reference>> found_;
};

}  // namespace warpledger::ablations
