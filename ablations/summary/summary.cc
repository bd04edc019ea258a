// SPDX-License-Identifier: Apache-2.0
#include "ablations/summary/summary.h"

#include "absl/status/status.h"

namespace warpledger::summary {

nlohmann::ordered_json ToJson(const Opcodes& opcodes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Opcodes::Opcode& opcode : opcodes.list) json[opcode.name] = ToJson(opcode.count);
  return json;
}

absl::Status FromJson(const nlohmann::ordered_json& json, const FieldPath& path, Opcodes& opcodes) {
  if (!json.is_object()) return ablations::WrongValue(path, "an object", json);
  opcodes.list.clear();
  for (const auto& [name, count] : json.items()) {
    RETURN_IF_ERROR(FromJson(count, path.Field(name),
                             opcodes.list.emplace_back(Opcodes::Opcode{name, {}}).count));
  }
  return absl::OkStatus();
}

}  // namespace warpledger::summary
