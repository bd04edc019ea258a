// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/record.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {

nlohmann::ordered_json ToJson(const SubjectDefinition& definition) { return definition.json; }

absl::Status FromJson(const nlohmann::ordered_json& json, const FieldPath& path,
                      SubjectDefinition& definition) {
  if (!json.is_object()) return WrongValue(path, "an object", json);
  definition.json = json;
  return absl::OkStatus();
}

nlohmann::ordered_json ToJson(const ShapeInfo& shape) {
  nlohmann::ordered_json json = {{"name", shape.name}};
  json.update(shape.fields);
  return json;
}

// Whether the parameters make a problem, its subject says.
absl::Status FromJson(const nlohmann::ordered_json& json, const FieldPath& path, ShapeInfo& shape) {
  constexpr double kMostWork = 1e30;
  FieldReader fields(json, path);
  fields("name", shape.name, PlainName{});
  for (const char* work : {"flops", "min_bytes"}) {
    double value = 0;
    fields(work, value,
           Must{"an amount of work", [](double each) { return each >= 0 && each <= kMostWork; }});
  }
  RETURN_IF_ERROR(fields.status());
  for (const auto& [key, value] : json.items()) {
    if (key == "name") continue;
    fields.Require(value.is_number() || value.is_boolean() || value.is_string(), key.c_str(),
                   "a number, a word, true or false");
    shape.fields[key] = value;
  }
  return fields.status();
}

std::string StoppingRule::WhyInvalid() const {
  bool valid = !looks.empty() && looks.size() == alpha_shares.size();
  double sum = 0;
  for (size_t i = 0; valid && i < looks.size(); ++i) {
    valid = looks[i] >= 1 && (i == 0 || looks[i] > looks[i - 1]) && alpha_shares[i] > 0;
    sum += alpha_shares[i];
  }
  if (valid && sum <= 1 + 1e-9) return "";
  return "alpha_shares: expected one share above 0 for each ascending look, at most 1 in all";
}

std::string PeersFile::WhyInvalid() const {
  std::set<std::string> names;
  for (const PeerInfo& peer : peers) {
    if (!names.insert(peer.name).second) {
      return absl::StrCat("peers: '", peer.name, "' stands twice");
    }
  }
  return "";
}

std::string ArchOf(const GpuInfo& gpu) {
  std::string digits;
  for (const char c : gpu.compute_capability) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(c))) digits.push_back(c);
  }
  return absl::StrCat("sm_", digits);
}

namespace {

// 90 for "sm_90"; nothing where it is no such name.
std::optional<int> NumberOf(std::string_view arch) {
  constexpr std::string_view kPrefix = "sm_";
  if (arch.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  arch.remove_prefix(kPrefix.size());
  int number = 0;
  const auto [end, error] = std::from_chars(arch.data(), arch.data() + arch.size(), number);
  if (error != std::errc() || end != arch.data() + arch.size() || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

int Nearness(std::string_view arch, std::string_view gpu_arch) {
  if (arch == gpu_arch) return 1000;
  const bool specific = !arch.empty() && arch.back() == 'a';
  if (specific) arch.remove_suffix(1);
  const std::optional<int> number = NumberOf(arch);
  const std::optional<int> of_gpu = NumberOf(gpu_arch);
  if (!number || !of_gpu) return 0;
  if (specific) return *number == *of_gpu ? 999 : 0;
  const bool runs = *number < *of_gpu && *number / 10 == *of_gpu / 10;
  return runs ? 1 + *number % 10 : 0;
}

namespace {

struct Flaw {
  const char* protocol_sha256;
  const char* technique;  // of an arm's configuration
  const char* why;
};

// Until 2026-11-21T18:18Z.
constexpr char kL2Aside[] =
    "the part of L2 that one arm sets aside was missing to all of them (decisions/0017)";

constexpr Flaw kFlaws[] = {{"875891fa124f971d53e63de4a3736c16f4ab1973e8c72dcffed59a2867657b81",
                            "l2_persisting_kv", kL2Aside},
                           {"ac06247502fffe91d23514f97f7cd33a66fade35fd22349322755170f780a9d9",
                            "l2_persisting_kv", kL2Aside},
                           {"37f8751e3c8107e68acd58dd8eefe38dfd838081b443e392c03f9169783a02e7",
                            "l2_persisting_kv", kL2Aside}};

}  // namespace

std::string WhyFlawed(const RunInfo& run) {
  for (const Flaw& flaw : kFlaws) {
    if (run.protocol_sha256 != flaw.protocol_sha256) continue;
    const bool acts = std::any_of(run.arms.begin(), run.arms.end(), [&](const Arm& arm) {
      return absl::StrContains(arm.config, flaw.technique);
    });
    if (acts) return flaw.why;
  }
  return "";
}

}  // namespace warpledger::ablations
