// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/json_fields.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <vector>

namespace warpledger::ablations {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Pet {
  std::string name;
  int legs = 4;

  void Visit(auto& f) {
    f("name", name, NotEmpty{});
    f("legs", legs, Within{0, 8}, "as it was born");
  }
  friend bool operator==(const Pet&, const Pet&) = default;
};

using ablations::FromJson;
using ablations::ToJson;

// A class that is written in a form of its own.
struct Colour {
  int hue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};
Json ToJson(const Colour& colour) { return absl::StrCat("hue ", colour.hue); }
absl::Status FromJson(const Json& json, const FieldPath& path, Colour& colour) {
  if (json != "hue 7") return WrongValue(path, "a colour", json);
  colour.hue = 7;
  return absl::OkStatus();
}

struct Zoo {
  std::string town = "Ulm";
  double area = 1.5;
  double warmth = 0;
  bool open = true;
  uint64_t visitors = 9;
  int64_t bytes = 0;
  std::string season = "summer";
  std::optional<int> cages = {};
  std::optional<Pet> mascot = {};
  std::vector<Pet> pets = {{"Rex", 4}, {"Hugin", 2}};
  std::map<std::string, int64_t> food = {{"hay", 3}};
  std::set<std::pair<std::string, int>> tours = {{"north", 1}};
  std::vector<int> prices = {5, 5};
  Colour colour{7};
  int founded = 0;

  std::string WhyInvalid() const { return pets.size() > 2 ? "pets: more than fit" : ""; }

  void Visit(auto& f) {
    VisitSchema(f, 3);
    f("town", town, AtMostBytes{5});
    f("area", area, Above{0, "an area"});
    f("warmth", warmth, kNullIsNan);
    f("open", open);
    f("visitors", visitors);
    f("bytes", bytes, ByteCount{});
    f("season", season, OneOf("summer", "winter"));
    f("cages", cages, AtLeast{1});
    f("mascot", mascot, kOnlyWhereSet);
    f("pets", pets);
    f("food", food, EachName{OneOf("hay", "oats", "fish")}, Each{AtLeast{0}});
    f("tours", tours);
    f("prices", prices, kOneForAll, Each{Must{"a price", [](int price) { return price > 1; }}});
    f("colour", colour);
    f("founded", founded, kOlderRecordsLack);
  }
  friend bool operator==(const Zoo&, const Zoo&) = default;
};

std::string ErrorOf(const Json& json) {
  return std::string(FromJson<Zoo>(json).status().message());
}

TEST(JsonFields, AreWrittenInTheirOrderAndReadBack) {
  Zoo zoo;
  EXPECT_EQ(DumpLine(ToJson(zoo)),
            R"({"schema_version":3,"town":"Ulm","area":1.5,"warmth":0.0,"open":true,"visitors":9,)"
            R"("bytes":0,"season":"summer","cages":null,"pets":[{"name":"Rex","legs":4},)"
            R"({"name":"Hugin","legs":2}],"food":{"hay":3},"tours":[["north",1]],"prices":5,)"
            R"("colour":"hue 7","founded":0})");
  EXPECT_EQ(*FromJson<Zoo>(ToJson(zoo)), zoo);
  zoo.mascot = Pet{"Bo", 3};
  zoo.cages = 4;
  zoo.prices = {5, 6};
  EXPECT_EQ(ToJson(zoo)["mascot"]["name"], "Bo");
  EXPECT_EQ(*FromJson<Zoo>(ToJson(zoo)), zoo);
}

TEST(JsonFields, MayBeAbsentOrUnknownWhereTheirRulesSaySo) {
  Json json = ToJson(Zoo{.founded = 1900});
  json["weather"] = "fine";
  json.erase("founded");
  EXPECT_EQ(FromJson<Zoo>(json)->founded, 0);
  json["warmth"] = nullptr;
  EXPECT_TRUE(std::isnan(FromJson<Zoo>(json)->warmth));
  EXPECT_TRUE(ToJson(Zoo{.area = HUGE_VAL})["area"].is_null());
}

TEST(JsonFields, ThatAreWrongAreNamedWithTheirPath) {
  const Json good = ToJson(Zoo{});
  const struct {
    const char* where;
    Json value;
    const char* error;
  } kCases[] = {
      {"/town", 3, "town: expected a string, found 3"},
      {"/town", "Berlin", "town: expected at most 5 bytes, found \"Berlin\""},
      {"/area", "wide", "area: expected a number, found \"wide\""},
      {"/area", 0, "area: expected an area above 0, found 0"},
      {"/warmth", true, "warmth: expected a number, found true"},
      {"/open", 1, "open: expected true or false, found 1"},
      {"/visitors", -1, "visitors: expected an integer >= 0, found -1"},
      {"/bytes", int64_t{1} << 51, "bytes: expected a number of bytes, found 2251799813685248"},
      {"/bytes", UINT64_MAX, "bytes: expected an integer, found 18446744073709551615"},
      {"/season", "spring", "season: expected summer or winter, found \"spring\""},
      {"/cages", 0, "cages: expected a number from 1, found 0"},
      {"/pets", 3, "pets: expected a list, found 3"},
      {"/pets/1/legs", 9, "pets[1].legs: expected a number from 0 to 8, found 9"},
      {"/pets/1/legs", int64_t{1} << 40, "pets[1].legs: expected a 32-bit integer, found"},
      {"/pets/0/name", "", "pets[0].name: expected a text that is not empty, found \"\""},
      {"/pets/0", Json::array(), "pets[0]: expected an object, found a list of 0"},
      {"/pets/2", {{"name", "Bo"}, {"legs", 1}}, "pets: more than fit"},
      {"/food", 1, "food: expected an object, found 1"},
      {"/food/hay", -2, "food.hay: expected a number from 0, found -2"},
      {"/food/meat", 1, "food: expected one of hay, oats, fish, found \"meat\""},
      {"/tours/0", {1, 2, 3}, "tours[0]: expected a list of two, found a list of 3"},
      {"/tours/0/1", "x", "tours[0][1]: expected an integer, found \"x\""},
      {"/prices", 1, "prices[0]: expected a price, found 1"},
      {"/prices", {5, 1}, "prices[1]: expected a price, found 1"},
      {"/colour", {{"hue", 7}}, "colour: expected a colour, found an object of 1 fields"},
      {"/schema_version", 0, "schema_version: expected a schema version >= 1, found 0"},
  };
  for (const auto& [where, value, error] : kCases) {
    Json json = good;
    json[Json::json_pointer(where)] = value;
    EXPECT_THAT(ErrorOf(json), StartsWith(error));
    EXPECT_EQ(FromJson<Zoo>(json).status().code(), absl::StatusCode::kInvalidArgument) << where;
  }
  Json json = good;
  json["pets"][1].erase("legs");
  EXPECT_THAT(ErrorOf(json), HasSubstr("pets[1].legs: missing"));
  EXPECT_THAT(ErrorOf(Json::array()), HasSubstr("value: expected an object"));
}

TEST(JsonFields, OfANewerSchemaAreRefusedAsSuch) {
  Json json = ToJson(Zoo{});
  json["schema_version"] = 4;
  EXPECT_EQ(FromJson<Zoo>(json).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(ErrorOf(json), HasSubstr("this record has schema 4, this program reads up to 3"));
}

TEST(JsonFields, ThatAreLongAreShownInPart) {
  Json json = ToJson(Zoo{});
  json["town"] = std::string(70, 'x');
  EXPECT_THAT(ErrorOf(json), HasSubstr("found \"" + std::string(60, 'x') + "… (70 bytes)\""));
}

// Found by damaging records: an error that printed such a value ended the program.
TEST(JsonFields, ThatNestDeepAreRefusedWithoutRecursion) {
  constexpr int kLevels = 58'000;
  Json deep = 1;
  for (int i = 0; i < kLevels; ++i) {
    Json outer = Json::array();
    outer.push_back(std::move(deep));
    deep = std::move(outer);
  }
  Json json = ToJson(Zoo{});
  json["town"] = std::move(deep);
  EXPECT_EQ(ErrorOf(json), "town: expected a string, found a list of 1");

  const std::string lists = std::string(kLevels, '[') + std::string(kLevels, ']');
  EXPECT_THAT(std::string(FromText<Zoo>("{\"town\":" + lists + "}").status().message()),
              HasSubstr("more than 64 levels deep"));
}

TEST(ParseJson, SaysWhereTextIsNotJson) {
  EXPECT_THAT(std::string(ParseJson("{\"a\":1,}").status().message()), HasSubstr("column"));
  EXPECT_FALSE(ParseJson("").ok());
  EXPECT_FALSE(ParseJson("{} {}").ok());
}

TEST(ParseJson, TakesTextOfAsManyLevelsAsItSaysAndNoMore) {
  const auto nested = [](int levels) {
    return std::string(static_cast<size_t>(levels), '[') +
           std::string(static_cast<size_t>(levels), ']');
  };
  EXPECT_TRUE(ParseJson(nested(kDeepestJson)).ok());
  EXPECT_FALSE(ParseJson(nested(kDeepestJson + 1)).ok());
  // Lists beside each other, and brackets in texts, are no levels.
  std::string flat = "[[]";
  for (int i = 0; i < 100; ++i) flat += R"(,[],{},"\"[{","\\")";
  EXPECT_TRUE(ParseJson(flat + "]").ok()) << ParseJson(flat + "]").status();
}

}  // namespace
}  // namespace warpledger::ablations
