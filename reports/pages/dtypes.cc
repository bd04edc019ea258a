// SPDX-License-Identifier: Apache-2.0
#include "reports/pages/dtypes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "reports/model/text.h"

namespace warpledger::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kColumns = 5;  // of lengths in a table

// 0.0312 -> "3.12%": three significant digits.
std::string RoundedPercent(double part) { return absl::StrFormat("%#.3g%%", 100 * part); }

std::vector<std::string> Distinct(const Json& list, const char* key) {
  std::vector<std::string> found;
  for (const Json& item : list) {
    const std::string name = item.at(key).get<std::string>();
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  }
  return found;
}

std::vector<int> Lengths(const Json& cells) {
  std::vector<int> lengths;
  for (const Json& cell : cells) lengths.push_back(cell.at("seq").get<int>());
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

// First, last and what lies evenly between.
std::vector<int> Shown(const std::vector<int>& lengths) {
  const auto count = std::min<size_t>(kColumns, lengths.size());
  std::vector<int> shown;
  for (size_t i = 0; i < count; ++i) {
    shown.push_back(lengths[count == 1 ? 0 : i * (lengths.size() - 1) / (count - 1)]);
  }
  return shown;
}

const Json* Find(const Json& cells, const std::string& inputs, const std::string& scheme, int seq) {
  for (const Json& cell : cells) {
    if (cell.at("inputs") == inputs && cell.at("scheme") == scheme && cell.at("seq") == seq) {
      return &cell;
    }
  }
  return nullptr;
}

std::string ErrorTable(const Json& record, const std::string& inputs) {
  const std::vector<int> lengths = Shown(Lengths(record.at("cells")));
  Table table("K and V | products in");
  for (const int seq : lengths) table.AddColumn(Cat(seq, " keys", ":"));
  table.AddColumn(Cat("largest, ", lengths.back(), " keys", ":"));
  for (const Json& scheme : record.at("schemes")) {
    std::vector<std::string> row = {scheme.at("label").get<std::string>(),
                                    scheme.value("products", std::string(kNone))};
    const Json* cell = nullptr;
    for (const int seq : lengths) {
      cell = Find(record.at("cells"), inputs, scheme.at("name").get<std::string>(), seq);
      row.push_back(cell == nullptr                   ? std::string(kNone)
                    : !cell->at("finite").get<bool>() ? "NaN"
                                                      : RoundedPercent(cell->at("relative_rms")));
    }
    row.push_back(cell == nullptr || !cell->at("finite").get<bool>()
                      ? std::string(kNone)
                      : FormatError(cell->at("max_err").get<double>()));
    table.AddRow(row);
  }
  return table.ToMarkdown();
}

std::string MistakeTable(const Json& record) {
  Table table("mistake | inputs");
  const std::vector<int> lengths = Lengths(record.at("mistakes").at(0).at("cells"));
  for (const int seq : lengths) table.AddColumn(Cat(seq, ":"));
  table.AddColumn("leaves the format's range");
  for (const Json& mistake : record.at("mistakes")) {
    std::vector<std::string> row = {mistake.at("what").get<std::string>(),
                                    Cat("`", mistake.at("inputs").get<std::string>(), "`")};
    for (const int seq : lengths) {
      std::string text(kNone);
      for (const Json& cell : mistake.at("cells")) {
        if (cell.at("seq") != seq) continue;
        const int bad = cell.at("non_finite_rows").get<int>();
        text = bad == 0 ? "0" : Cat("**", bad, "** of ", cell.at("rows").get<int>());
      }
      row.push_back(text);
    }
    row.push_back(mistake.at("leaves_fp8_range").get<bool>() ? "yes" : "no");
    table.AddRow(row);
  }
  return table.ToMarkdown();
}

// The lengths between which a mistake's rows go from mostly fine to mostly not.
std::vector<std::string> BeginningAt(const Json& record, int length) {
  std::vector<std::string> names;
  for (const Json& mistake : record.at("mistakes")) {
    bool before = false;
    bool at = false;
    for (const Json& cell : mistake.at("cells")) {
      const bool most = 2 * cell.at("non_finite_rows").get<int>() > cell.at("rows").get<int>();
      // A ragged length between them may have its own reasons.
      if (cell.at("seq").get<int>() == length) at = most;
      if (cell.at("seq").get<int>() <= length / 2) before = before || most;
    }
    if (at && !before) {
      names.push_back(Cat("`", mistake.at("name").get<std::string>(), "` on `",
                          mistake.at("inputs").get<std::string>(), "` inputs"));
    }
  }
  return names;
}

bool AllFinite(const Json& record) {
  return std::all_of(record.at("cells").begin(), record.at("cells").end(),
                     [](const Json& cell) { return cell.at("finite").get<bool>(); });
}

std::string Render(const Json& record) {
  const Json& cells = record.at("cells");
  const std::vector<int> lengths = Lengths(cells);
  std::string page = "# K and V in fewer bits: error against length\n\n";
  Append(
      &page, "A study on the CPU (run `", record.at("run_id").get<std::string>(), "`, ",
      record.at("created_utc").get<std::string>().substr(0, 10), ", seed ",
      record.at("seed").get<int64_t>(), "): ", record.at("heads").get<int>(), " heads of head_dim ",
      record.at("head_dim").get<int>(), ", ", record.at("rows_per_head").get<int>(),
      " query rows of each, ", lengths.front(), " to ", lengths.back(),
      " keys. No GPU and no kernel of ours is in it: it says what a format costs before anybody "
      "writes a kernel.\n\n"
      "The error is that of O computed from the stored K and V, against O in FP64 from the fp16 "
      "ones. With products in FP64 it is the storage's own; with products in fp16 the scores, P "
      "and O are rounded to fp16 too. Percentages are root mean squares over those of O, which "
      "shrinks with the number of keys. A block is ",
      record.at("block_keys").get<int>(),
      " keys.\n\n"
      "**Mixed** is what the L4 notes call FP8 K and V with fp16 scores: K and V are stored in 8 "
      "bits and widened to fp16, in which everything is multiplied. All kernels of ours with "
      "8-bit K and V in the mma family are mixed (`mma_kv_dtype`, a scale per head; with "
      "`mma_kv_block_scale`, per K/V tile): codes are widened in registers, and P is fp16; "
      "scores and sums are fp32 there, where the mixed rows here round scores too. "
      "`wgmma_fp8` alone isn't: both operands of its products are FP8, so that Q and P are "
      "rounded to E4M3 as well, which no row here does.\n\n"
      "![Error against length](dtypes.svg)\n\n");
  for (const std::string& inputs : Distinct(cells, "inputs")) {
    Append(&page, "## Inputs `", inputs, "`\n\n", ErrorTable(record, inputs), "\n");
  }
  Append(&page,
         "## Which mistakes give NaN\n\n"
         "The L4 notes report NaN at 512 keys with 8-bit K and V, and blame FP8's range. ",
         AllFinite(record) ? Cat("No scheme above has one, at any of ", lengths.size(),
                                 " lengths and on any inputs. ")
                           : "Some schemes above have one. ",
         "Below, kernels that are wrong in one way each: query rows with a NaN or an infinity, by "
         "number of keys.\n\n",
         MistakeTable(record), "\n");
  const std::vector<std::string> beginning = BeginningAt(record, 512);
  if (beginning.empty()) {
    Append(&page, "None of them begins at 512 keys.\n");
  } else {
    Append(&page, "Fine up to 256 keys and broken at 512: ", JoinWords(beginning),
           ". What it means: [decision 0015](../decisions/0015-data-types.md).\n");
  }
  return page;
}

}  // namespace

absl::StatusOr<std::string> RenderDtypes(const Json& record) {
  try {
    return Render(record);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        Cat("dtypes.json: ", error.what(), "; write it again with `warpledger dtypes`"));
  }
}

}  // namespace warpledger::report
