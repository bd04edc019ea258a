// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/study.h"

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <system_error>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/base/nearest.h"
#include "ablations/record/profile.h"
#include "ablations/subjects/study/build.h"
#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

constexpr double kMostTensorBytes = 1e12;

using Json = nlohmann::ordered_json;

// Refuses a name in `json` that no description has, as "PATH: …". An object for FieldReader's
// place in Visit().
class KnownNames {
 public:
  KnownNames(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  template <typename T, typename... Rules>
  void operator()(const char* name, T& value, const Rules&...) {
    names_.emplace_back(name);
    const auto found = json_.find(name);
    if (!status_.ok() || found == json_.end()) return;
    const std::string path = absl::StrCat(path_, path_.empty() ? "" : ".", name);
    if constexpr (Described<T>) {
      status_ = Check(*found, path, value);
    } else if constexpr (json_fields::List<T>) {
      if constexpr (Described<typename T::value_type>) {
        for (size_t i = 0; i < found->size() && status_.ok(); ++i) {
          status_ = Check((*found)[i], absl::StrCat(path, "[", i, "]"), value[i]);
        }
      }
    }
  }

  // `value` was read from `json`, so that both have the same form.
  template <typename T>
  static absl::Status Check(const Json& json, const std::string& path, T& value) {
    KnownNames known(json, path);
    value.Visit(known);
    RETURN_IF_ERROR(known.status_);
    for (const auto& [name, field] : json.items()) {
      if (absl::c_linear_search(known.names_, name)) continue;
      const std::vector<std::string> near = NearestNames(name, known.names_, 1);
      return absl::InvalidArgumentError(
          absl::StrCat(path, path.empty() ? "" : ".", name, ": there is no such field",
                       near.empty() ? "" : absl::StrCat("; did you mean '", near.front(), "'?")));
    }
    return absl::OkStatus();
  }

 private:
  const Json& json_;
  const std::string path_;
  std::vector<std::string> names_;
  absl::Status status_;
};

bool IsName(std::string_view text) {
  return !text.empty() && !absl::ascii_isdigit(text[0]) &&
         absl::c_all_of(text, [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool IsRegex(const std::string& text) {
  try {
    const std::regex unused(text);
    return true;
  } catch (const std::regex_error&) {
    return false;
  }
}

std::string Of(const char* list, size_t index, const std::string& why) {
  return absl::StrCat(list, "[", index, "].", why);
}

// A name that a list has twice.
template <typename T>
std::string WhyNotUnique(const char* list, const char* field, const std::vector<T>& all,
                         std::string T::*name) {
  std::set<std::string> seen;
  for (size_t i = 0; i < all.size(); ++i) {
    if (seen.insert(all[i].*name).second) continue;
    return Of(list, i, absl::StrCat(field, ": '", all[i].*name, "' is there twice"));
  }
  return "";
}

std::string WhyNoShapes(const char* list, const std::vector<StudyTensor>& tensors,
                        const Parameters& parameters) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto elements = ElementsOf(tensors[i], parameters);
    if (!elements.ok()) return Of(list, i, std::string(elements.status().message()));
  }
  return "";
}

std::string WhyNoDefinition(const StudyClaim& claim) {
  for (const auto& [field, texts] :
       {std::pair{"define", &claim.define}, std::pair{"otherwise", &claim.otherwise}}) {
    for (size_t i = 0; i < texts->size(); ++i) {
      const std::string& text = (*texts)[i];
      if (IsName(text.substr(0, text.find('=')))) continue;
      return absl::StrCat(field, "[", i, "]: '", text, "' is no NAME or NAME=VALUE");
    }
  }
  return "";
}

}  // namespace

nlohmann::ordered_json ToJson(const Expression& expression) { return expression.text; }

absl::Status FromJson(const Json& json, const FieldPath& path, Expression& expression) {
  if (!json.is_string() && !json.is_number()) return WrongValue(path, "an expression", json);
  expression.text = json.is_string() ? json.get<std::string>() : json.dump();
  return absl::OkStatus();
}

std::string StudyCheck::WhyInvalid() const {
  if (reference.empty() == variant.empty()) {
    return "reference: name a Python file as `reference`, or an arm as `variant`, and not both";
  }
  if (!variant.empty() && atol == 0 && rtol == 0) {
    return "variant: results that are held against an arm's need `atol` or `rtol`";
  }
  return "";
}

std::string StudyPrediction::WhyInvalid() const {
  return low <= high ? "" : "low: it is above `high`";
}

std::string StudyClaim::WhyInvalid() const {
  if (define.empty() && sources.empty() && flags.empty()) {
    return "define: a claim's candidate has definitions, sources or flags of its own";
  }
  if (!sass.empty() && !fewer_sass.empty()) {
    return "fewer_sass: a claim has `sass` or `fewer_sass`, not both";
  }
  if (!counter.empty() && !lower_counter.empty()) {
    return "lower_counter: a claim has `counter` or `lower_counter`, not both";
  }
  for (const auto& [field, metric] :
       {std::pair{"counter", &counter}, std::pair{"lower_counter", &lower_counter}}) {
    const std::vector<std::string> known = ProfileMetrics();
    if (metric->empty() || absl::c_linear_search(known, *metric)) continue;
    return absl::StrCat(field, ": `profile` does not read '", *metric,
                        "'; the nearest that it reads are ",
                        absl::StrJoin(NearestNames(*metric, known, 3), ", "));
  }
  for (const auto& [field, text] : {std::pair{"sass", &sass}, std::pair{"fewer_sass", &fewer_sass},
                                    std::pair{"ptx", &ptx}, std::pair{"launched", &launched}}) {
    if (!IsRegex(*text)) return absl::StrCat(field, ": '", *text, "' is no regular expression");
  }
  return WhyNoDefinition(*this);
}

std::string Study::WhyInvalid() const {
  for (std::string why : {WhyNotUnique("input", "name", input, &StudyTensor::name),
                          WhyNotUnique("output", "name", output, &StudyTensor::name),
                          WhyNotUnique("problem", "name", problem, &StudyProblem::name),
                          WhyNotUnique("claim", "id", claim, &StudyClaim::id)}) {
    if (!why.empty()) return why;
  }
  for (size_t i = 0; i < output.size(); ++i) {
    if (!absl::c_any_of(input, [&](const auto& each) { return each.name == output[i].name; })) {
      continue;
    }
    return Of(
        "output", i,
        absl::StrCat("name: '", output[i].name,
                     "' is an input, which a call only reads: an output has memory of its own"));
  }
  if (output.empty()) return "output: a study has at least one";
  if (problem.empty()) return "problem: a study has at least one";
  if (claim.empty()) return "claim: a study has at least one";
  if ((device == kOnGpu) == architectures.empty()) {
    return "architectures: name them for device = \"gpu\", as in [\"sm_90\"], and only there";
  }
  for (size_t i = 0; i < problem.size(); ++i) {
    const Parameters& parameters = problem[i].parameters;
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (!absl::c_equal(parameters, problem[0].parameters, same)) {
      return Of(
          "problem", i,
          absl::StrCat("parameters: they have other names than those of '", problem[0].name, "'"));
    }
    for (std::string why :
         {WhyNoShapes("input", input, parameters), WhyNoShapes("output", output, parameters)}) {
      if (!why.empty()) return why;
    }
    for (const auto& [field, expression] :
         {std::pair{"work.flops", &work.flops}, std::pair{"work.bytes", &work.bytes},
          std::pair{"workspace", &workspace}}) {
      const auto value = Evaluate(expression->text, parameters);
      if (!value.ok()) return absl::StrCat(field, ": ", std::string(value.status().message()));
      const bool may_be_none = expression == &workspace;
      if (*value > 0 || (may_be_none && *value == 0)) continue;
      return absl::StrCat(field, ": it is ", *value, " for problem '", problem[i].name, "'");
    }
  }
  for (size_t i = 0; i < claim.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const StudyClaim& a = claim[k];
      const StudyClaim& b = claim[i];
      if (a.define != b.define || a.sources != b.sources || a.flags != b.flags || a.on != b.on) {
        continue;
      }
      return Of("claim", i, absl::StrCat("define: it is the same arm as claim '", a.id, "'"));
    }
    const bool is_on_one = absl::c_any_of(absl::MakeConstSpan(claim).first(i),
                                          [&](const auto& each) { return each.id == claim[i].on; });
    if (!claim[i].on.empty() && !is_on_one) {
      return Of("claim", i, absl::StrCat("on: there is no claim '", claim[i].on, "' before it"));
    }
    const std::string& predicted = claim[i].prediction.problem;
    if (!predicted.empty() && !absl::c_any_of(problem, [&](const StudyProblem& each) {
          return each.name == predicted;
        })) {
      return Of("claim", i,
                absl::StrCat("prediction.problem: there is no problem '", predicted, "'"));
    }
  }
  return "";
}

std::string Study::WhyAmbiguous() const {
  for (size_t i = 0; i < claim.size(); ++i) {
    for (const char* own : {kStudyBase, kStudyNull, kSinceClaim}) {
      if (claim[i].id != own) continue;
      return Of("claim", i,
                absl::StrCat("id: '", own, "' has a meaning of its own in every study"));
    }
  }
  for (size_t i = 0; i < problem.size(); ++i) {
    const std::string& each = problem[i].name;
    if (each.find_first_of(",=") != each.npos) {
      return Of("problem", i,
                absl::StrCat("name: '", each,
                             "' can't be named in a list, where ',' parts problems "
                             "and '=' stands in one that is named by its parameters"));
    }
    if (each == "all" || each == "ladder") {
      return Of("problem", i,
                absl::StrCat("name: '", each, "' has a meaning of its own: every problem"));
    }
  }
  for (size_t i = 0; i < input.size(); ++i) {
    if (!problem.front().parameters.contains(input[i].name)) continue;
    return Of(
        "input", i,
        absl::StrCat("name: '", input[i].name,
                     "' is a parameter of the problems too, and reference() gets both by name"));
  }
  if (check.variant.empty()) return "";
  const std::string unknown = UnknownClaimIn(*this, check.variant);
  return unknown.empty() ? "" : absl::StrCat("check.variant: ", unknown);
}

absl::StatusOr<StudyFile> StudyFile::Load(const std::string& folder) {
  StudyFile out;
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "a/"
  out.folder = path.string();
  const std::string file = (path / kStudyFile).string();
  const absl::StatusOr<std::string> text = ReadFile(file);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(folder, ": no study here, it has no ", kStudyFile,
                                            "; `warpledger study new NAME` makes one"));
  }
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(out.toml, TomlText::Parse(file, *text));
  absl::StatusOr<Study> study = FromJson<Study>(out.toml.json());
  if (!study.ok()) return out.toml.Located(study.status());
  out.study = *std::move(study);
  if (absl::Status known = KnownNames::Check(out.toml.json(), "", out.study); !known.ok()) {
    return out.toml.Located(known);
  }
  if (const std::string why = out.study.WhyAmbiguous(); !why.empty()) {
    return out.toml.Located(absl::InvalidArgumentError(why));
  }
  return out;
}

int64_t DtypeBytes(const std::string& dtype) {
  static const std::map<std::string, int64_t> kBytes = {{"fp64", 8},  {"fp32", 4}, {"fp16", 2},
                                                        {"bf16", 2},  {"e4m3", 1}, {"e5m2", 1},
                                                        {"int32", 4}, {"int8", 1}};
  const auto found = kBytes.find(dtype);
  return found == kBytes.end() ? 0 : found->second;
}

absl::StatusOr<int64_t> ElementsOf(const StudyTensor& tensor, const Parameters& parameters) {
  double elements = 1;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto extent = EvaluateCount(tensor.shape[i].text, parameters);
    if (!extent.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape[", i, "]: ", std::string(extent.status().message())));
    }
    elements *= static_cast<double>(*extent);
  }
  if (elements >= 1 && elements <= kMostTensorBytes) return static_cast<int64_t>(elements);
  return absl::InvalidArgumentError(
      absl::StrCat("shape: '", tensor.name, "' would have ", elements, " elements"));
}

}  // namespace warpledger::ablations
