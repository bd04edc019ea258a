// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/sdpa/dtypes/dtype_study.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace warpledger::ablations {
namespace {

nlohmann::ordered_json Study(int max_seq) {
  return StudyDtypes({.seed = 7, .max_seq = max_seq}, [](std::string_view) {});
}
const nlohmann::ordered_json& Small() {
  static const nlohmann::ordered_json record = Study(256);
  return record;
}

double RelativeRms(const nlohmann::ordered_json& record, std::string_view inputs,
                   std::string_view scheme, int seq) {
  for (const auto& cell : record["cells"]) {
    if (cell["inputs"] == inputs && cell["scheme"] == scheme && cell["seq"] == seq) {
      return cell["relative_rms"].get<double>();
    }
  }
  ADD_FAILURE() << inputs << " " << scheme << " " << seq;
  return 0;
}

TEST(StudyDtypes, HasACellPerDistributionLengthAndScheme) {
  const auto& record = Small();
  EXPECT_EQ(record["schemes"].size(), StudySchemes().size());
  EXPECT_EQ(record["cells"].size(), 3 * 3 * StudySchemes().size());
  std::set<std::string> seen;
  for (const auto& cell : record["cells"]) {
    EXPECT_TRUE(cell["finite"].get<bool>()) << cell;
    EXPECT_TRUE(seen.insert(cell["inputs"].get<std::string>() + cell["seq"].dump() +
                            cell["scheme"].get<std::string>())
                    .second);
  }
}

TEST(StudyDtypes, HasEachFp8FormatPerHeadAndPerBlockWithItsStorageAloneAndMixed) {
  const auto& schemes = Small()["schemes"];
  for (const char* format : {"e4m3", "e5m2"}) {
    for (const char* scope : {"head", "block"}) {
      const std::string storage = std::string(format) + "_" + scope;
      for (const auto& [name, products] :
           {std::pair<std::string, std::string>(storage, "FP64"),
            std::pair<std::string, std::string>(storage + "_fp16", "fp16")}) {
        const auto found = std::find_if(schemes.begin(), schemes.end(),
                                        [&](const auto& scheme) { return scheme["name"] == name; });
        ASSERT_NE(found, schemes.end()) << name;
        EXPECT_EQ((*found)["kv_bits"], 8) << name;
        EXPECT_EQ((*found)["products"], products) << name;
        EXPECT_EQ((*found)["label"].get<std::string>().starts_with("mixed: "), products == "fp16");
      }
    }
  }
}

// The price of fp16 scores and P beside that of the storage, of which it is a small part.
TEST(StudyDtypes, AMixedSchemeDiffersFromItsStorageAloneAndNotByMuch) {
  for (const char* storage : {"e4m3_head", "e4m3_block", "e5m2_head", "e5m2_block"}) {
    const double alone = RelativeRms(Small(), "normal", storage, 256);
    const double mixed = RelativeRms(Small(), "normal", std::string(storage) + "_fp16", 256);
    EXPECT_NE(mixed, alone) << storage;
    EXPECT_NEAR(mixed, alone, 0.02 * alone) << storage;
  }
}

TEST(StudyDtypes, GivesTheSameTwice) { EXPECT_EQ(Study(64), Study(64)); }

TEST(StudyDtypes, OrdersTheFormatsByTheirBits) {
  const auto& record = Small();
  for (const int seq : {64, 256}) {
    const auto error = [&](std::string_view scheme) {
      return RelativeRms(record, "normal", scheme, seq);
    };
    EXPECT_LT(error("fp16"), error("bf16"));
    EXPECT_LT(error("bf16"), error("uint8_head"));
    EXPECT_LT(error("uint8_head"), error("e4m3_head"));
    EXPECT_LT(error("e4m3_head"), error("e5m2_head"));
  }
  // An outlier takes an integer format's steps from all values that share its scale; a
  // floating-point format's stay relative.
  EXPECT_GT(RelativeRms(record, "outliers", "uint8_head", 256) /
                RelativeRms(record, "normal", "uint8_head", 256),
            RelativeRms(record, "outliers", "e4m3_head", 256) /
                RelativeRms(record, "normal", "e4m3_head", 256));
}

}  // namespace
}  // namespace warpledger::ablations
