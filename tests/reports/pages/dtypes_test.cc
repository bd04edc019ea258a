// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "reports/pages/pages.h"
#include "tests/status_matchers.h"

namespace warpledger::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

// One scheme at two lengths, one mistake that begins at 512 keys and one that is always there.
Json DtypesRecord() {
  return Json::parse(R"({
    "schema_version": 1, "kind": "dtypes", "run_id": "dtypes-x", "seed": 7,
    "created_utc": "2026-01-02T03:04:05Z", "head_dim": 64, "heads": 4, "rows_per_head": 32,
    "block_keys": 64, "schemes": [{"name": "a", "label": "A | b", "kv_bits": 8, "products": "fp16"}],
    "cells": [
      {"inputs": "normal", "seq": 64, "scheme": "a", "finite": true, "max_err": 0.5,
       "mean_err": 0.1, "relative_rms": 0.0312},
      {"inputs": "normal", "seq": 128, "scheme": "a", "finite": true, "max_err": 0.25,
       "mean_err": 0.1, "relative_rms": 0.1}],
    "mistakes": [
      {"name": "late", "what": "Late.", "inputs": "normal", "leaves_fp8_range": false,
       "cells": [{"seq": 256, "non_finite_rows": 1, "rows": 16},
                 {"seq": 512, "non_finite_rows": 16, "rows": 16}]},
      {"name": "always", "what": "Always.", "inputs": "normal", "leaves_fp8_range": true,
       "cells": [{"seq": 256, "non_finite_rows": 16, "rows": 16},
                 {"seq": 512, "non_finite_rows": 16, "rows": 16}]}]})");
}

std::string DtypesPage(const Json& record) { return RenderDtypes(record).value(); }

TEST(RenderDtypes, ShowsErrorsByLengthAndTheLargestOfTheLast) {
  EXPECT_THAT(DtypesPage(DtypesRecord()),
              HasSubstr("| A \\| b | fp16 | 3.12% | 10.0% | 2.5e-01 |"));
}

TEST(RenderDtypes, SaysWhatMixedIsAndWhichKernelIsNot) {
  const std::string page = DtypesPage(DtypesRecord());
  EXPECT_THAT(page, HasSubstr("**Mixed** is"));
  EXPECT_THAT(page, HasSubstr("mixed (`mma_kv_dtype`"));
  EXPECT_THAT(page, HasSubstr("`wgmma_fp8` alone isn't"));
}

TEST(RenderDtypes, LeavesProductsOpenThatAnOlderRecordDoesNotName) {
  Json record = DtypesRecord();
  record["schemes"][0].erase("products");
  EXPECT_THAT(DtypesPage(record), HasSubstr("| A \\| b | – | 3.12% |"));
}

TEST(RenderDtypes, NamesTheMistakesThatBeginAt512KeysAndNoOthers) {
  const std::string page = DtypesPage(DtypesRecord());
  EXPECT_THAT(page, HasSubstr("broken at 512: `late` on `normal` inputs. "));
  EXPECT_THAT(page, HasSubstr("| Late. | `normal` | **1** of 16 | **16** of 16 | no |"));
  Json none = DtypesRecord();
  none["mistakes"][0]["cells"][1]["non_finite_rows"] = 0;
  EXPECT_THAT(DtypesPage(none), HasSubstr("None of them begins at 512 keys"));
}

TEST(RenderDtypes, SaysSoWhereASchemeGivesNan) {
  EXPECT_THAT(DtypesPage(DtypesRecord()), HasSubstr("No scheme above has one"));
  Json record = DtypesRecord();
  record["cells"][1] = {{"inputs", "normal"}, {"seq", 128}, {"scheme", "a"}, {"finite", false}};
  const std::string page = DtypesPage(record);
  EXPECT_THAT(page, HasSubstr("| A \\| b | fp16 | 3.12% | NaN |"));
  EXPECT_THAT(page, Not(HasSubstr("No scheme above has one")));
}

TEST(RenderDtypes, ShowsTextOfARecordAsText) {
  Json record = DtypesRecord();
  record["created_utc"] = "<b>2026";
  record["mistakes"][0]["name"] = "<i>\n";
  record["cells"][0]["inputs"] = record["cells"][1]["inputs"] = "<u>";
  const std::string page = DtypesPage(record);
  for (const char* tag : {"<b", "<i", "<u"}) EXPECT_THAT(page, Not(HasSubstr(tag)));
}

TEST(RenderDtypes, RefusesCountsThatNoStudyHas) {
  const auto refuses = [](const auto& change) {
    Json record = DtypesRecord();
    change(record);
    EXPECT_THAT(RenderDtypes(record), StatusIs(absl::StatusCode::kInvalidArgument));
  };
  refuses([](Json& json) { json["mistakes"][0]["cells"][1]["non_finite_rows"] = 2147483647; });
  refuses([](Json& json) { json["mistakes"][0]["cells"][1]["rows"] = int64_t{1} << 60; });
  refuses([](Json& json) { json["mistakes"][0]["cells"] = Json::array(); });
  refuses([](Json& json) { json["mistakes"] = Json::array(); });
  refuses([](Json& json) { json["cells"] = Json::array(); });
  refuses([](Json& json) { json["cells"][0]["seq"] = -1; });
}

TEST(RenderDtypes, RefusesARecordThatLacksSomething) {
  for (const char* key : {"cells", "schemes", "mistakes", "seed"}) {
    Json record = DtypesRecord();
    record.erase(key);
    EXPECT_THAT(RenderDtypes(record), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(key)));
  }
}

}  // namespace
}  // namespace warpledger::report
