// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/rig/library.h"

#include <dlfcn.h>

#include "ablations/base/files.h"
#include "ablations/record/record_files.h"
#include "ablations/subjects/study/include/warpledger/study.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

absl::Status StatusOf(const char* entry, int returned) {
  if (returned == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(entry, "() returned ", returned));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const StudyLibrary>> StudyLibrary::Load(const std::string& path,
                                                                       const std::string& sha256) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  if (Sha256(bytes) != sha256) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is no longer what was built for this run"));
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::InternalError(absl::StrCat("it does not load: ", dlerror()));
  const auto version = reinterpret_cast<int (*)()>(dlsym(handle, "warpledger_study_version"));
  auto library = std::make_shared<StudyLibrary>();
  library->call_ = reinterpret_cast<Entry>(dlsym(handle, "warpledger_call"));
  library->prepare_ = reinterpret_cast<Entry>(dlsym(handle, "warpledger_prepare"));
  if (version == nullptr || library->call_ == nullptr) {
    return absl::InternalError(absl::StrCat(path, " has no warpledger_call()"));
  }
  if (const int has = version(); has != WARPLEDGER_STUDY_VERSION) {
    return absl::InternalError(absl::StrCat("it was compiled with version ", has,
                                            " of warpledger/study.h; this program has version ",
                                            WARPLEDGER_STUDY_VERSION));
  }
  return library;
}

absl::Status StudyLibrary::Prepare(const WarpledgerCall& call) const {
  return prepare_ == nullptr ? absl::OkStatus() : StatusOf("warpledger_prepare", prepare_(&call));
}

absl::Status StudyLibrary::Call(const WarpledgerCall& call) const {
  return StatusOf("warpledger_call", call_(&call));
}

}  // namespace warpledger::ablations
