// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/python.h"

#include <cstdlib>
#include <string_view>

#include "ablations/base/files.h"
#include "ablations/base/subprocess.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace warpledger::ablations {
namespace {

constexpr absl::Duration kLongest = absl::Minutes(60);  // a compiler may take long

std::string Interpreter() {
  const char* variable = std::getenv("WARPLEDGER_PYTHON");
  if (variable != nullptr && *variable != '\0') return variable;
  return FindProgramFile("venv/bin/python").value_or("python3");
}

}  // namespace

absl::StatusOr<nlohmann::ordered_json> AskPythonAsJson(const std::string& script,
                                                       const nlohmann::ordered_json& request) {
  const auto path = FindProgramFile(absl::StrCat("ablations/subjects/study/", script));
  if (!path.ok()) return absl::UnavailableError(path.status().message());
  const std::string python = Interpreter();
  std::string reply;
  const absl::Status ran =
      RunLines({python, "-B", *path}, DumpLine(request), kLongest, [&](std::string_view line) {
        reply = std::string(line);
        return absl::OkStatus();
      });
  if (absl::IsNotFound(ran)) {
    return absl::UnavailableError(absl::StrCat(
        python,
        " doesn't start: a study needs Python 3.10 with numpy; WARPLEDGER_PYTHON names it"));
  }
  if (!ran.ok()) return absl::InternalError(absl::StrCat(script, ": ", ran.message()));
  ASSIGN_OR_RETURN(nlohmann::ordered_json json, ParseJson(reply));
  if (const std::string error = TextOf(json, "error"); !error.empty()) {
    return absl::InvalidArgumentError(error);
  }
  return json;
}

}  // namespace warpledger::ablations
