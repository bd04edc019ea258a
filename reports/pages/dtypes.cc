// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "reports/model/describe.h"
#include "reports/model/lists.h"
#include "reports/model/plain.h"
#include "reports/model/text.h"
#include "reports/pages/pages.h"

namespace warpledger::report {
namespace {

using ablations::Within;

// More than any study has; what is summed or doubled stays a number.
constexpr Within kSize{1, 1 << 30};
constexpr Within kRows{0, 1 << 30};

struct Scheme {
  std::string name;
  std::string label;
  std::string products{kNone};  // older records lack it

  void Visit(auto& f) {
    FIELDS(name, label);
    f("products", products, ablations::kOlderRecordsLack);
  }
};

struct Cell {
  std::string inputs;
  int seq = 0;
  std::string scheme;
  bool finite = false;
  double relative_rms = 0;  // this and the next where it is finite
  double max_err = 0;

  void Visit(auto& f) {
    f("inputs", inputs);
    f("seq", seq, kSize);
    FIELDS(scheme, finite);
    if (finite) {
      FIELDS(relative_rms, max_err);
    }
  }
};

struct MistakeCell {
  int seq = 0;
  int64_t non_finite_rows = 0;
  int64_t rows = 0;

  void Visit(auto& f) {
    f("seq", seq, kSize);
    f("non_finite_rows", non_finite_rows, kRows);
    f("rows", rows, kRows);
  }
};

struct Mistake {
  std::string name;
  std::string what;
  std::string inputs;
  bool leaves_fp8_range = false;
  std::vector<MistakeCell> cells;

  DESCRIBE_FIELDS(name, what, inputs, leaves_fp8_range, cells)
};

struct Study {
  std::string run_id;
  std::string created_utc;
  uint64_t seed = 0;
  int heads = 0;
  int head_dim = 0;
  int rows_per_head = 0;
  int block_keys = 0;
  std::vector<Scheme> schemes;
  std::vector<Cell> cells;
  std::vector<Mistake> mistakes;

  std::string WhyInvalid() const {
    if (cells.empty()) return "cells: it has none";
    return mistakes.empty() || mistakes[0].cells.empty() ? "mistakes: the first has no cell" : "";
  }

  void Visit(auto& f) {
    FIELDS(run_id, created_utc, seed, heads, head_dim, rows_per_head, block_keys, schemes, cells,
           mistakes);
  }
};

constexpr int kColumns = 5;  // of lengths in a table

// 0.0312 -> "3.12%": three significant digits.
std::string RoundedPercent(double part) { return absl::StrFormat("%#.3g%%", 100 * part); }

std::vector<std::string> InputsOf(const std::vector<Cell>& cells) {
  std::vector<std::string> found;
  for (const Cell& cell : cells) AddOnce(cell.inputs, &found);
  return found;
}

template <typename AnyCell>
std::vector<int> Lengths(const std::vector<AnyCell>& cells) {
  std::vector<int> lengths;
  for (const AnyCell& cell : cells) lengths.push_back(cell.seq);
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

const Cell* Find(const Study& study, const std::string& inputs, const std::string& scheme,
                 int seq) {
  return FindIn(study.cells, [&](const Cell& cell) {
    return cell.inputs == inputs && cell.scheme == scheme && cell.seq == seq;
  });
}

std::string ErrorTable(const Study& study, const std::string& inputs) {
  const std::vector<int> lengths = Shown(Lengths(study.cells));
  Table table("K and V | products in");
  for (const int seq : lengths) table.AddColumn(Cat(seq, " keys", ":"));
  table.AddColumn(Cat("largest, ", lengths.back(), " keys", ":"));
  for (const Scheme& scheme : study.schemes) {
    std::vector<std::string> row = {scheme.label, scheme.products};
    const Cell* cell = nullptr;
    for (const int seq : lengths) {
      cell = Find(study, inputs, scheme.name, seq);
      row.push_back(cell == nullptr ? std::string(kNone)
                    : !cell->finite ? "NaN"
                                    : RoundedPercent(cell->relative_rms));
    }
    row.push_back(cell == nullptr || !cell->finite ? std::string(kNone)
                                                   : FormatError(cell->max_err));
    table.AddRow(row);
  }
  return table.ToMarkdown();
}

std::string MistakeTable(const Study& study) {
  Table table("mistake | inputs");
  const std::vector<int> lengths = Lengths(study.mistakes[0].cells);
  for (const int seq : lengths) table.AddColumn(Cat(seq, ":"));
  table.AddColumn("leaves the format's range");
  for (const Mistake& mistake : study.mistakes) {
    std::vector<std::string> row = {mistake.what, Code(mistake.inputs)};
    for (const int seq : lengths) {
      std::string text(kNone);
      for (const MistakeCell& cell : mistake.cells) {
        if (cell.seq != seq) continue;
        text =
            cell.non_finite_rows == 0 ? "0" : Cat("**", cell.non_finite_rows, "** of ", cell.rows);
      }
      row.push_back(text);
    }
    row.push_back(mistake.leaves_fp8_range ? "yes" : "no");
    table.AddRow(row);
  }
  return table.ToMarkdown();
}

// The lengths between which a mistake's rows go from mostly fine to mostly not.
std::vector<std::string> BeginningAt(const Study& study, int length) {
  std::vector<std::string> names;
  for (const Mistake& mistake : study.mistakes) {
    bool before = false;
    bool at = false;
    for (const MistakeCell& cell : mistake.cells) {
      const bool most = 2 * cell.non_finite_rows > cell.rows;
      // A ragged length between them may have its own reasons.
      if (cell.seq == length) at = most;
      if (cell.seq <= length / 2) before = before || most;
    }
    if (at && !before) {
      names.push_back(Cat(Code(mistake.name), " on ", Code(mistake.inputs), " inputs"));
    }
  }
  return names;
}

bool AllFinite(const Study& study) {
  return std::all_of(study.cells.begin(), study.cells.end(),
                     [](const Cell& cell) { return cell.finite; });
}

}  // namespace

absl::StatusOr<std::string> RenderDtypes(const nlohmann::ordered_json& record) {
  absl::StatusOr<Study> read = ablations::FromJson<Study>(record);
  if (!read.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("dtypes.json: ", read.status().message(),
                                                   "; write it again with `warpledger dtypes`"));
  }
  const Study study = Plain(*std::move(read));
  const std::vector<int> lengths = Lengths(study.cells);
  std::string page = "# K and V in fewer bits: error against length\n\n";
  Append(
      &page,
      "This study computes on the CPU the error that a number format of K and V causes, "
      "before anybody writes a kernel (run `",
      study.run_id, "`, ", study.created_utc.substr(0, 10), ", seed ", study.seed, "). It has ",
      study.heads, " heads of head_dim ", study.head_dim, ", ", study.rows_per_head,
      " query rows per head, and ", lengths.front(), " to ", lengths.back(),
      " keys.\n\n"
      "The error compares O from the stored K and V with O in FP64 from the fp16 K and V. With "
      "products in FP64 only the storage causes error; with products in fp16 the scores, P and O "
      "are rounded to fp16 too. Percentages are the root mean square of the error divided by that "
      "of O, which shrinks with the number of keys. A block is ",
      study.block_keys,
      " keys.\n\n"
      "**Mixed** is the scheme that the L4 notes call FP8 K and V with fp16 scores: K and V are "
      "stored in 8 bits and widened to fp16, and all products are in fp16. Our kernels of the mma "
      "family with 8-bit K and V are mixed (`mma_kv_dtype` with a scale per head, "
      "`mma_kv_block_scale` with a scale per K/V tile). They widen codes in registers, and P is "
      "fp16; their scores and sums are fp32, while the mixed rows here round scores too. "
      "`wgmma_fp8` alone isn't mixed: both operands of its products are FP8, so Q and P are "
      "rounded to E4M3 as well, which no row here does.\n\n"
      "![Error against length](dtypes.svg)\n\n");
  for (const std::string& inputs : InputsOf(study.cells)) {
    Append(&page, "## Inputs `", inputs, "`\n\n", ErrorTable(study, inputs), "\n");
  }
  Append(&page,
         "## Which mistakes give NaN\n\n"
         "The L4 notes report NaN at 512 keys with 8-bit K and V, and blame FP8's range. ",
         AllFinite(study) ? Cat("No scheme above has one, at any of ", lengths.size(),
                                " lengths and on any inputs. ")
                          : "Some schemes above have one. ",
         "Each row of this table is a kernel with one mistake. It counts query rows with a NaN or "
         "an infinity, by number of keys.\n\n",
         MistakeTable(study), "\n");
  const std::vector<std::string> beginning = BeginningAt(study, 512);
  if (beginning.empty()) {
    Append(&page, "None of them begins at 512 keys.\n");
  } else {
    Append(&page, "Fine up to 256 keys and broken at 512: ", JoinWords(beginning),
           ". [Decision 0015](../decisions/0015-data-types.md) draws the conclusions.\n");
  }
  return page;
}

}  // namespace warpledger::report
