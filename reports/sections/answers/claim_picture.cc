// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "reports/model/describe.h"
#include "reports/model/lists.h"
#include "reports/model/text.h"
#include "reports/sections/answers/answers.h"

namespace warpledger::report {
namespace {

// Where rows of single problems become rows of kinds.
constexpr size_t kMostRows = 12;

constexpr int kWidth = 720;
constexpr int kLeft = 190;  // of the axis
constexpr int kRight = 30;
constexpr int kRowHeight = 24;
constexpr int kTop = 34;
constexpr int kBottom = 44;

struct PictureRow {
  std::string label;
  std::vector<const Verdict*> verdicts;
};

// The marks of plots/style.py, around 0, 0.
struct Mark {
  std::string_view verdict;
  std::string_view shape;
};
constexpr Mark kMarks[] = {
    {"ADOPT", "<path d='M0-6 5.5 4.5H-5.5Z' fill='#009E73'/>"},
    {"REAL_BELOW_GATE", "<path d='M0-5 5 0 0 5-5 0Z' fill='#0072B2'/>"},
    {"NEUTRAL", "<path d='M-4-4H4V4H-4Z' fill='#8A8A8A'/>"},
    {"REGRESSION", "<path d='M0 6 5.5-4.5H-5.5Z' fill='#D55E00'/>"},
    {"INCONCLUSIVE", "<circle r='4.2' fill='#fff' stroke='#E69F00' stroke-width='2'/>"},
};

const Mark* MarkOf(const Verdict& verdict) {
  return FindIn(kMarks, [&](const Mark& mark) { return mark.verdict == verdict.verdict; });
}

bool IsDrawn(const Verdict& verdict) { return verdict.ratio.value && MarkOf(verdict) != nullptr; }

PictureRow& RowCalled(const std::string& label, std::vector<PictureRow>* rows) {
  for (PictureRow& row : *rows) {
    if (row.label == label) return row;
  }
  return rows->emplace_back(PictureRow{label, {}});
}

std::vector<PictureRow> RowsOf(const MeasuredClaim& claim) {
  std::vector<PictureRow> problems;
  std::vector<PictureRow> kinds;
  for (const std::string_view name : kRegimeNames) kinds.push_back({std::string(name), {}});
  for (const Judgement& judgement : claim.judged) {
    if (!IsDrawn(*judgement.verdict)) continue;
    RowCalled(judgement.verdict->shape, &problems).verdicts.push_back(judgement.verdict);
    const Attention* problem = ProblemOf(judgement);
    RowCalled(problem == nullptr ? "" : RegimeOf(*problem), &kinds)
        .verdicts.push_back(judgement.verdict);
  }
  std::erase_if(kinds, [](const PictureRow& row) { return row.verdicts.empty(); });
  return problems.size() > kMostRows ? kinds : problems;
}

class Axis {
 public:
  explicit Axis(const std::vector<PictureRow>& rows) {
    for (const PictureRow& row : rows) {
      for (const Verdict* verdict : row.verdicts) {
        low_ = std::min(low_, *verdict->ratio.value);
        high_ = std::max(high_, *verdict->ratio.value);
      }
    }
    low_ /= 1.04;
    high_ *= 1.04;
  }

  // An interval that leaves the axis ends at its border.
  double At(double ratio) const {
    const double share = std::log(std::clamp(ratio, low_, high_) / low_) / std::log(high_ / low_);
    return kLeft + share * (kWidth - kLeft - kRight);
  }

  // Even steps where the axis is short, else round numbers on both sides of 1.
  std::vector<double> Ticks() const {
    constexpr double kSteps[] = {0.02, 0.05, 0.1, 0.2, 0.5};
    std::vector<double> ticks;
    for (const double step : kSteps) {
      if ((high_ - low_) / step > 8) continue;
      for (int i = static_cast<int>(std::ceil(low_ / step)); i * step <= high_; ++i) {
        ticks.push_back(i * step);
      }
      return ticks;
    }
    for (const double tick : {0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0}) {
      if (tick >= low_ && tick <= high_) ticks.push_back(tick);
    }
    return ticks;
  }

 private:
  double low_ = 0.97;
  double high_ = 1.03;
};

std::string Line(double x1, double y1, double x2, double y2, std::string_view style) {
  return Cat(absl::StrFormat("<path d='M%.1f %.1f %.1f %.1f' ", x1, y1, x2, y2), style, "/>\n");
}
std::string Label(double x, double y, std::string_view anchor, std::string_view text) {
  return Cat(absl::StrFormat("<text x='%.1f' y='%.1f' text-anchor='", x, y), anchor, "'>", text,
             "</text>\n");
}

}  // namespace

std::string ClaimPicture(const MeasuredClaim& claim) {
  const std::vector<PictureRow> rows = RowsOf(claim);
  if (rows.empty()) return "";
  const Axis axis(rows);
  const double bottom = kTop + kRowHeight * static_cast<double>(rows.size());
  const int height = static_cast<int>(bottom) + kBottom;
  std::string out = Cat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth * 3 / 4, "pt\" height=\"",
      height * 3 / 4, "pt\" viewBox=\"0 0 ", kWidth, " ", height,
      "\" font-family='DejaVu Sans,Arial,sans-serif' font-size='12' fill='#1A1A1A' role='img'>\n",
      "<title>", ClaimName(claim), ": ratios by problem</title>\n<path d='M0 0H", kWidth, "V",
      height, "H0Z' fill='#fff'/>\n");
  for (size_t i = 0; i < rows.size(); i += 2) {
    Append(&out, "<path d='M0 ", kTop + kRowHeight * static_cast<int>(i), "H", kWidth, "v",
           kRowHeight, "H0Z' fill='#F4F4F4'/>\n");
  }
  for (const double tick : axis.Ticks()) {
    const double x = axis.At(tick);
    out += Line(x, kTop, x, bottom, "stroke='#D5D5D5'");
    out += Label(x, bottom + 16, "middle", absl::StrFormat("%g×", tick));
  }
  out += Line(axis.At(1), kTop, axis.At(1), bottom, "stroke='#1A1A1A' stroke-width='1.5'");
  out += Label(axis.At(1) - 6, 22, "end", "slower ←");
  out += Label(axis.At(1) + 6, 22, "start", "→ faster");
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = kTop + kRowHeight * (static_cast<double>(i) + 0.5);
    out += Label(kLeft - 12, y + 4, "end", rows[i].label);
    for (const Verdict* verdict : rows[i].verdicts) {
      if (!verdict->ratio.low || !verdict->ratio.high) continue;
      out += Line(axis.At(*verdict->ratio.low), y, axis.At(*verdict->ratio.high), y,
                  "stroke='#555' stroke-opacity='.5' stroke-width='2'");
    }
    for (const Verdict* verdict : rows[i].verdicts) {
      Append(&out,
             absl::StrFormat("<g transform='translate(%.1f %.1f)'>", axis.At(*verdict->ratio.value),
                             y),
             MarkOf(*verdict)->shape, "</g>\n");
    }
  }
  double x = 12;
  for (const Mark& mark : kMarks) {
    const bool used = std::any_of(rows.begin(), rows.end(), [&](const PictureRow& row) {
      return std::any_of(row.verdicts.begin(), row.verdicts.end(),
                         [&](const Verdict* v) { return v->verdict == mark.verdict; });
    });
    if (!used) continue;
    Append(&out, absl::StrFormat("<g transform='translate(%.1f %d)'>", x, height - 12), mark.shape,
           "</g>\n");
    out += Label(x + 12, height - 8, "start", mark.verdict);
    x += 30 + 8.2 * static_cast<double>(mark.verdict.size());
  }
  return out + "</svg>\n";
}

}  // namespace warpledger::report
