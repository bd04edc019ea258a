// SPDX-License-Identifier: Apache-2.0
#include "ablations/judge/verdict_table.h"

#include <initializer_list>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kToggleColumn = 24;
constexpr int kShapeColumn = 22;

std::string Fit(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

std::string Number(const Json& value) {
  return value.is_number() ? absl::StrFormat("%.3f", value.get<double>()) : "-";
}

std::string Row(const std::string& toggle, const std::string& shape, const std::string& ratio,
                const std::string& interval, const std::string& gate, const std::string& verdict) {
  std::string row =
      absl::StrFormat("%-*s  %-*s  %8s  %-20s  %5s  %s", kToggleColumn, Fit(toggle, kToggleColumn),
                      kShapeColumn, Fit(shape, kShapeColumn), ratio, interval, gate, verdict);
  return row + "\n";
}

std::string IntervalText(const Json& item) {
  if (!item["ci_low"].is_number() || !item["ci_high"].is_number()) return "-";
  return absl::StrCat("[", Number(item["ci_low"]), ", ", Number(item["ci_high"]), "]");
}

absl::Status Require(const Json& summary, const char* list,
                     std::initializer_list<const char*> texts,
                     std::initializer_list<const char*> figures) {
  if (!summary.is_object() || !summary.contains(list) || !summary[list].is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(list, ": missing; is this a summary.json?"));
  }
  for (size_t i = 0; i < summary[list].size(); ++i) {
    const Json& item = summary[list][i];
    const auto fail = [&](const char* field) {
      return absl::InvalidArgumentError(
          absl::StrCat(list, "[", i, "].", field, ": missing or of the wrong type"));
    };
    if (!item.is_object()) return fail("");
    for (const char* field : texts) {
      if (!item.contains(field) || !item[field].is_string()) return fail(field);
    }
    for (const char* field : figures) {
      if (!item.contains(field)) return fail(field);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> VerdictTable(const Json& summary) {
  absl::Status status = Require(summary, "verdicts", {"toggle", "base", "shape", "verdict"},
                                {"ratio", "ci_low", "ci_high", "gate"});
  if (status.ok()) {
    status = Require(summary, "controls", {"kind", "shape", "verdict", "timing_verdict"},
                     {"ratio", "ci_low", "ci_high"});
  }
  if (!status.ok()) return status;
  std::string table = Row("toggle", "shape", "ratio", "interval", "gate", "verdict");
  std::map<std::pair<std::string, std::string>, int> times_judged;
  for (const Json& v : summary["verdicts"]) {
    ++times_judged[{v["toggle"].get<std::string>(), v["shape"].get<std::string>()}];
  }
  for (const Json& v : summary["verdicts"]) {
    const std::string gate =
        v["gate"].is_number() ? absl::StrFormat("%.2f", v["gate"].get<double>()) : "-";
    absl::StrAppend(
        &table, Row(v["toggle"].get<std::string>(), v["shape"].get<std::string>(),
                    Number(v["ratio"]), IntervalText(v), gate, v["verdict"].get<std::string>()));
    // A factorial judges a toggle in several places.
    if (times_judged[{v["toggle"].get<std::string>(), v["shape"].get<std::string>()}] > 1) {
      absl::StrAppend(&table, "    on ", v["base"].get<std::string>(), "\n");
    }
  }
  for (const Json& c : summary["controls"]) {
    const std::string verdict = c["verdict"].get<std::string>();
    const std::string timing = c["timing_verdict"].get<std::string>();
    absl::StrAppend(&table, Row(absl::StrCat("(control) ", c["kind"].get<std::string>()),
                                c["shape"].get<std::string>(), Number(c["ratio"]), IntervalText(c),
                                "-", verdict));
    if (timing != verdict) absl::StrAppend(&table, "    by its times alone: ", timing, "\n");
  }
  return table;
}

}  // namespace warpledger::ablations
