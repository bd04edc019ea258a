// SPDX-License-Identifier: Apache-2.0
// The inputs of a study on a problem, and what is right for the first set of them.
//
// Errors: InvalidArgument "FIELD: …" (TomlText::Located() knows the line), as for a reference that
// fails or gives NaN; Unavailable without Python.
//
//   ASSIGN_OR_RETURN(const StudyData data, MakeData(study, folder, parameters, {1, 2}, false));

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ablations/subjects/study/study.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

// A tensor on a problem.
struct SizedTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string values;
  int64_t elements = 0;

  int64_t bytes() const { return elements * DtypeBytes(dtype); }
  DESCRIBE_FIELDS(name, dtype, shape, values)
};

// Of tensors that ElementsOf() accepts.
std::vector<SizedTensor> Sized(const std::vector<StudyTensor>& tensors,
                               const Parameters& parameters);

struct StudyData {
  std::vector<std::vector<std::vector<std::byte>>> inputs;  // by set and tensor
  // Of the first set, by output; empty where a variant is the reference.
  std::vector<std::vector<double>> reference;
  // Largest and mean error that each output may have; likewise.
  std::vector<std::pair<double, double>> limits;
  std::vector<std::string> let_through;  // wrong results that these limits would not find
};

// `probe`: plant wrong results, for `let_through`.
absl::StatusOr<StudyData> MakeData(const Study& study, const std::string& folder,
                                   const Parameters& parameters, const std::vector<uint64_t>& seeds,
                                   bool probe);

// Elements as numbers.
std::vector<double> Decode(const std::string& dtype, const std::byte* data, int64_t elements);

}  // namespace warpledger::ablations
