// SPDX-License-Identifier: Apache-2.0
// TOML as JSON, with the line of each value.
//
// Errors: InvalidArgument "FILE:LINE: what is wrong".
//
//   ASSIGN_OR_RETURN(const TomlText toml, TomlText::Parse("study.toml", text));
//   const absl::StatusOr<Study> study = FromJson<Study>(toml.json());
//   if (!study.ok()) return toml.Located(study.status());

#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace warpledger::ablations {

class TomlText {
 public:
  static absl::StatusOr<TomlText> Parse(const std::string& file, std::string_view text);

  const nlohmann::ordered_json& json() const { return json_; }
  // "FILE:LINE", of a value by its path ("claim[1].gate"), or of what holds it where it is absent.
  std::string PlaceOf(std::string_view path) const;
  // An error that opens with "PATH: ", or with "PATH.", as those of json_fields.h do: with the
  // file and the line in front.
  absl::Status Located(const absl::Status& error) const;

 private:
  std::string file_;
  nlohmann::ordered_json json_;
  std::map<std::string, int> lines_;  // by path
};

}  // namespace warpledger::ablations
