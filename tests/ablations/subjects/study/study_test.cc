// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/study.h"

#include <filesystem>

#include "ablations/base/files.h"
#include "ablations/subjects/study/build.h"
#include "ablations/subjects/study/study_subject.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

namespace warpledger::ablations {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Template() {
  return *ReadFile(*FindProgramFile("ablations/subjects/study/template/study.toml"));
}

absl::StatusOr<StudyFile> Loaded(const std::string& text) {
  const ScratchFolder folder = *ScratchFolder::Make();
  EXPECT_TRUE(WriteFileAtomically(absl::StrCat(folder.path(), "/study.toml"), text).ok());
  return StudyFile::Load(folder.path());
}

TEST(StudyTest, TheTemplateIsOne) {
  const auto file = Loaded(Template());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->study.claim.size(), 2);
  EXPECT_EQ(*ElementsOf(file->study.input[0], {{"rows", 3}, {"cols", 5}}), 15);
}

// A record keeps it.
TEST(StudyTest, ComesBackFromItsDefinition) {
  const auto file = Loaded(Template());
  ASSERT_TRUE(file.ok());
  const auto subject = StudySubject::Of({.study = file->study, .folder = "/a"});
  const auto again = FromJson<StudyDefinition>(subject->Definition());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->study, file->study);
}

TEST(StudyTest, WhatIsWrongHasItsLine) {
  const std::vector<std::vector<std::string>> kWrong = {
      {"dtype = \"fp32\"\nshape = [\"cols\"]", "dtype = \"fp23\"\nshape = [\"cols\"]",
       "study.toml:17: input[1].dtype: expected one of fp64, fp32"},
      {"flops = \"2 * rows", "flops = \"2 * * rows", "work.flops: '2 * * rows * cols' is no exp"},
      {"shape = [\"cols\"]", "shape = [\"colls\"]", "input[1].shape[0]: 'colls' names 'colls'"},
      {"define = [\"GRID_STRIDE\"]", "define = [\"VECTOR_LOADS\"]",
       "claim[1].define: it is the same arm as claim 'vector_loads'"},
      {"define = [\"GRID_STRIDE\"]", "defin = [\"GRID_STRIDE\"]",
       "claim[1].define: a claim's candidate has definitions, sources or flags"},
      {"base_label", "base_lable", "base_lable: there is no such field; did you mean 'base_label'"},
      {"id = \"grid_stride\"", "id = \"vector_loads\"",
       "claim[1].id: 'vector_loads' is there twice"},
      {"version = 1", "version = 2", "study.toml:3: version: expected 1, as this program reads"},
      {"problem = \"large\"", "problem = \"huge\"",
       "prediction.problem: there is no problem 'huge'"},
      {"sass = \"LDG", "sass = \"(LDG", "claim[0].sass: '(LDG\\.E\\.128' is no regular expression"},
      {"sass = \"LDG", "sass = \"" + std::string(501, '('),
       "claim[0].sass: expected at most 500 bytes"},
      {"rows = 4096, cols", "row = 4096, cols", "problem[1].parameters: they have other names"},
      {"architectures = [\"sm_90\"]", "", "architectures: name them for device"},
      {"reference = \"reference.py\"", "", "check.reference: name a Python file"},
      {"name = \"STUDY_NAME\"", "name = 3", "study.toml:4: name: expected a string, found 3"},
      {"id = \"vector_loads\"", "id = \"vector_loads\"\non = \"grid_stride\"",
       "claim[0].on: there is no claim 'grid_stride' before it"},
      {"id = \"vector_loads\"", "id = \"vector_loads\"\nsource = { name = \"A\", link = \"a\" }",
       "claim[0].source.link: expected an address"},
      {"reference = \"reference.py\"", "variant = \"grid_strid\"\natol = 0.1",
       "check.variant: 'grid_strid' is no claim; did you mean 'grid_stride'?"},
      {"reference = \"reference.py\"", "variant = \"base+grid_stride\"\natol = 0.1",
       "check.variant: 'base' is no claim"},
      {"name = \"x\"", "name = \"x\"\nvalues = \"normals\"",
       "input[0].values: expected one of normal, uniform, ones, integers, found"},
      {"[work]", "[work", "study.toml:3"}};
  for (const auto& wrong : kWrong) {
    const std::string text = absl::StrReplaceAll(Template(), {{wrong[0], wrong[1]}});
    ASSERT_NE(text, Template()) << wrong[0];
    const auto file = Loaded(text);
    ASSERT_FALSE(file.ok()) << wrong[1];
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(wrong[2]));
    EXPECT_THAT(std::string(file.status().message()), HasSubstr("study.toml:"));
  }
}

TEST(StudyTest, AClaimHasNoNameOfTheProgramsOwn) {
  for (const char* id : {"base", "null_toggle", "since"}) {
    const auto file = Loaded(absl::StrReplaceAll(
        Template(), {{"id = \"grid_stride\"", absl::StrCat("id = \"", id, "\"")}}));
    ASSERT_FALSE(file.ok()) << id;
    EXPECT_THAT(std::string(file.status().message()),
                AllOf(HasSubstr("study.toml:52: "),
                      HasSubstr(absl::StrCat("claim[1].id: '", id, "' has a meaning"))));
  }
  // As the arms of --design=since are called; ':' is refused anywhere.
  const auto file = Loaded(
      absl::StrReplaceAll(Template(), {{"id = \"grid_stride\"", "id = \"was:grid_stride\""}}));
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("claim[1].id: expected a name"));
}

TEST(StudyTest, ANameOfAProblemHasOneMeaning) {
  for (const auto& [name, why] : {std::pair{"a,b", "'a,b' can't be named in a list"},
                                  {"rows=4", "'rows=4' can't be named"},
                                  {"all", "'all' has a meaning"},
                                  {"ladder", "'ladder' has a meaning"}}) {
    const auto file = Loaded(absl::StrReplaceAll(
        Template(), {{"name = \"small\"", absl::StrCat("name = \"", name, "\"")}}));
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_THAT(std::string(file.status().message()),
                HasSubstr(absl::StrCat("problem[0].name: ", why)));
  }
}

// reference() gets both by their names.
TEST(StudyTest, AParameterHasNoNameOfAnInput) {
  const auto file = Loaded(absl::StrReplaceAll(Template(), {{"name = \"x\"", "name = \"cols\""}}));
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr("input[0].name: 'cols' is a parameter of the problems too"));
}

// They were measured: a record says what it meant.
TEST(StudyTest, OlderRecordsWithSuchNamesLoad) {
  Study study = Loaded(Template())->study;
  study.claim[1].id = "since";
  study.problem[0].name = "a,b";
  study.check = {.reference = "", .variant = "grid_strid", .atol = 0.1};
  EXPECT_TRUE(FromJson<Study>(ToJson(study)).ok());
}

TEST(StudyTest, AVariantThatIsRightIsTheBaseOrOfItsClaims) {
  for (const char* variant : {"base", "grid_stride", "vector_loads+grid_stride"}) {
    const auto file = Loaded(absl::StrReplaceAll(
        Template(), {{"reference = \"reference.py\"",
                      absl::StrCat("variant = \"", variant, "\"\natol = 0.1")}}));
    EXPECT_TRUE(file.ok()) << file.status();
  }
}

// An unknown name would be left out without a word, and another variant built.
TEST(StudyTest, AVariantOfAnUnknownClaimIsNotBuilt) {
  const auto file = Loaded(Template());
  ASSERT_TRUE(file.ok());
  for (const char* variant : {"grid_strid", "vector_loads+x", "base+grid_stride", ""}) {
    const auto build = TryToBuildStudy(*file, {variant});
    EXPECT_TRUE(absl::IsInvalidArgument(build.status())) << variant << build.status();
    EXPECT_THAT(std::string(build.status().message()), HasSubstr("is no claim")) << variant;
  }
}

TEST(StudyTest, AFolderWithoutOneIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(StudyFile::Load("/nonexistent").status()));
}

TEST(StudyTest, HasAVariantForEachArm) {
  const auto subject = StudySubject::Of({.study = Loaded(Template())->study});
  EXPECT_THAT(*subject->VariantsOf(""),
              ElementsAre("base", "vector_loads", "grid_stride", "null_toggle"));
  EXPECT_THAT(*subject->VariantsOf("ladder"),
              ElementsAre("base", "vector_loads", "vector_loads+grid_stride", "null_toggle"));
  EXPECT_EQ(subject->ParseProblems("small")->front().flops(), 2.0 * 64 * 1024);
}

TEST(StudyTest, AClaimMayBeOnTopOfAnother) {
  const auto file =
      Loaded(absl::StrReplaceAll(Template(), {{"id = \"grid_stride\"", R"(id = "grid_stride"
on = "vector_loads"
source = { name = "A course", link = "https://example.org/course" })"}}));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto subject = StudySubject::Of({.study = file->study});
  EXPECT_THAT(*subject->VariantsOf(""),
              ElementsAre("base", "vector_loads", "vector_loads+grid_stride", "null_toggle"));
  const PlannedDesign one_on = *subject->FindDesign("one_on");
  EXPECT_EQ(one_on.arms[1].base, "base");
  EXPECT_EQ(one_on.arms[2].base, "one_on:vector_loads");
  // What is on top goes with what is left out.
  EXPECT_THAT(*subject->VariantsOf("leave_one_out"),
              ElementsAre("vector_loads+grid_stride", "base", "vector_loads",
                          "vector_loads+grid_stride+null_toggle"));
  EXPECT_EQ(subject->FindDesign("leave_one_out")->arms[1].name, "without:vector_loads+grid_stride");
  const Claim* claim = subject->FindClaim("grid_stride");
  EXPECT_EQ(claim->source.name, "A course");
  EXPECT_EQ(claim->source.link, "https://example.org/course");
}

TEST(StudyTest, TakesAProblemByItsParameters) {
  const auto subject = StudySubject::Of({.study = Loaded(Template())->study});
  const auto problems = subject->ParseProblems("small,rows=2:cols=8");
  ASSERT_TRUE(problems.ok()) << problems.status();
  EXPECT_EQ(problems->size(), 2);
  EXPECT_EQ(problems->back().flops(), 32);
  // As a worker names it.
  EXPECT_EQ(subject->ParseProblems(problems->back().name)->front(), problems->back());
  const auto why = [&](const char* list) {
    return std::string(subject->ParseProblems(list).status().message());
  };
  EXPECT_THAT(why("rows=2"), HasSubstr("they have other names than those of 'small'"));
  EXPECT_THAT(why("rows=2:cols=x"), HasSubstr("'cols=x' of problem 'rows=2:cols=x' is no NAME="));
  EXPECT_THAT(why("rows=2:rows=3:cols=8"), HasSubstr("names 'rows' twice"));
  EXPECT_THAT(why("rows=0:cols=8"), HasSubstr("'x' would have 0 elements"));
}

// Folklore: who says so, what is expected, and judged at more than one size.
TEST(StudyTest, OurStudiesSayWhoSaysSoAndPredict) {
  int studies = 0;
  size_t claims = 0;
  const std::filesystem::path readme = *FindProgramFile("ablations/studies/README.md");
  for (const auto& entry : std::filesystem::directory_iterator(readme.parent_path())) {
    if (!entry.is_directory()) continue;
    const auto file = StudyFile::Load(entry.path().string());
    ASSERT_TRUE(file.ok()) << file.status();
    const Study& study = file->study;
    SCOPED_TRACE(study.name);
    EXPECT_EQ(study.name, entry.path().filename().string());
    EXPECT_THAT(study.architectures, ElementsAre("sm_80", "sm_89", "sm_90"));
    EXPECT_GE(study.problem.size(), 2);
    for (const StudyClaim& claim : study.claim) {
      EXPECT_NE(claim.source.name, "") << claim.id;
      EXPECT_NE(claim.mechanism, "") << claim.id;
      EXPECT_NE(claim.prediction.why, "") << claim.id;
    }
    ++studies;
    claims += study.claim.size();
  }
  EXPECT_GE(studies, 8);
  EXPECT_GE(claims, 30);
}

// What claims a launch leaves the machine code as it is.
TEST(StudyTest, ALaunchSideClaimHasTheCodeOfItsBase) {
  const auto file = Loaded(absl::StrReplaceAll(
      Template(),
      {{"define = [\"GRID_STRIDE\"]", "define = [\"GRID_STRIDE\"]\nlaunched = \"x\""}}));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto subject = StudySubject::Of({.study = file->study});
  EXPECT_THAT(subject->CodeNames("vector_loads+grid_stride", {}), ElementsAre("vector_loads"));
  EXPECT_THAT(subject->CodeNames("grid_stride", {}), ElementsAre("base"));
}

}  // namespace
}  // namespace warpledger::ablations
