// SPDX-License-Identifier: Apache-2.0
#include "reports/model/derived/verdict_pictures.h"

#include <fstream>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace warpledger::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The cases that plots/parts.py is tested with as well, in parts_test.py.
nlohmann::json Cases() {
  std::ifstream file("tests/reports/testdata/picture_parts.json");
  EXPECT_TRUE(file) << "run the test from the repository's root";
  return nlohmann::json::parse(file);
}

Summary SummaryOf(const nlohmann::json& one) {
  Summary summary;
  for (const nlohmann::json& shape : one["shapes"]) {
    Shape& added = summary.shapes.emplace_back();
    added.name = shape[0];
    added.attention.emplace();
    added.attention->head_dim = shape[1];
    added.attention->causal = shape[2];
    for (int i = 0; i < one["verdicts_per_shape"]; ++i) {
      summary.verdicts.emplace_back().shape = shape[0];
    }
  }
  return summary;
}

TEST(PictureParts, AreCutByHeadDimThenByMaskThenEvenly) {
  const nlohmann::json cases = Cases();
  ASSERT_GT(cases.size(), 5);
  for (const nlohmann::json& one : cases) {
    const Summary summary = SummaryOf(one);
    nlohmann::json parts = nlohmann::json::array();
    for (const PicturePart& part : PictureParts(summary)) {
      std::vector<std::string> names;
      for (const Shape* shape : part.shapes) names.push_back(shape->name);
      parts.push_back({part.suffix, part.title, names});
    }
    EXPECT_EQ(parts, one["parts"]) << one["case"];
  }
}

TEST(VerdictPictures, OfOnePartHaveNoHeading) {
  const std::string text = VerdictPictures(SummaryOf(Cases()[0]), "plots/", "mma_", "toggle");
  EXPECT_EQ(text,
            "![Effect of each toggle at each shape](plots/mma_effects.svg)\n\n"
            "![Verdict of each toggle at each shape](plots/mma_matrix.svg)\n");
}

TEST(VerdictPictures, OfSeveralPartsStandUnderAHeadingEach) {
  Summary summary = SummaryOf(Cases()[1]);
  summary.provenance.cache = "cold";
  const std::string text = VerdictPictures(summary, "", "mma_", "step");
  EXPECT_THAT(text, HasSubstr("### Shapes with head_dim 64\n\n"
                              "![Effect of each step at shapes with head_dim 64]("
                              "mma_effects_d64_cold.svg)\n\n"));
  EXPECT_THAT(text, HasSubstr("### Shapes with head_dim 128\n\n"));
  EXPECT_THAT(text, HasSubstr("](mma_matrix_d128_cold.svg)\n"));
  EXPECT_THAT(text, Not(HasSubstr("each shape")));
}

}  // namespace
}  // namespace warpledger::report
