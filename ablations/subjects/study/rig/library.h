// SPDX-License-Identifier: Apache-2.0
// A variant's library, loaded into this process.
//
// Errors: FailedPrecondition where the file is not the one that was built, Internal where it can't
// be loaded, lacks an entry, was compiled with another version of warpledger/study.h, or its entry
// returns an error.
//
//   ASSIGN_OR_RETURN(const auto library, StudyLibrary::Load(path, sha256));
//   RETURN_IF_ERROR(library->Call(call));

#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct WarpledgerCall;  // include/warpledger/study.h

namespace warpledger::ablations {

// Stays loaded until the process ends: unloading code that put work on a GPU gains nothing.
class StudyLibrary {
 public:
  static absl::StatusOr<std::shared_ptr<const StudyLibrary>> Load(const std::string& path,
                                                                  const std::string& sha256);

  // warpledger_prepare(), where it has one.
  absl::Status Prepare(const WarpledgerCall& call) const;
  absl::Status Call(const WarpledgerCall& call) const;

 private:
  using Entry = int (*)(const WarpledgerCall*);

  Entry prepare_ = nullptr;
  Entry call_ = nullptr;
};

}  // namespace warpledger::ablations
