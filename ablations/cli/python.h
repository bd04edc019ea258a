// SPDX-License-Identifier: Apache-2.0
// The Python interpreter for peers and plots.

#ifndef WARPLEDGER_ABLATIONS_CLI_PYTHON_H_
#define WARPLEDGER_ABLATIONS_CLI_PYTHON_H_

#include <cstdlib>
#include <string>

#include "ablations/cli/flags.h"
#include "absl/flags/flag.h"

namespace warpledger::cli {

// --python, else $WARPLEDGER_PYTHON, else python3.
inline std::string PythonInterpreter() {
  if (const std::string flag = absl::GetFlag(FLAGS_python); !flag.empty()) return flag;
  const char* variable = std::getenv("WARPLEDGER_PYTHON");
  return variable != nullptr && *variable != '\0' ? variable : "python3";
}

}  // namespace warpledger::cli

#endif  // WARPLEDGER_ABLATIONS_CLI_PYTHON_H_
