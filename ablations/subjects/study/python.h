// SPDX-License-Identifier: Apache-2.0
// The study's scripts: a request as JSON in, a reply as one line of JSON out.
//
// The interpreter is $WARPLEDGER_PYTHON, else that of the build (venv/bin/python beside bin/),
// else python3.
//
// Errors: InvalidArgument with the reply's `error`; Unavailable without an interpreter or the
// script; Internal where the script itself fails.
//
//   ASSIGN_OR_RETURN(const BuildReply reply, AskPython<BuildReply>("study_build.py", request));

#pragma once

#include <string>

#include "ablations/base/json_fields.h"
#include "absl/status/statusor.h"
#include "kernels/common/status_macros.h"
#include "nlohmann/json.hpp"

namespace warpledger::ablations {

absl::StatusOr<nlohmann::ordered_json> AskPythonAsJson(const std::string& script,
                                                       const nlohmann::ordered_json& request);

template <Described Reply, Described Request>
absl::StatusOr<Reply> AskPython(const std::string& script, const Request& request) {
  ASSIGN_OR_RETURN(const nlohmann::ordered_json reply, AskPythonAsJson(script, ToJson(request)));
  return FromJson<Reply>(reply);
}

}  // namespace warpledger::ablations
