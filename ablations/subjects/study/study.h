// SPDX-License-Identifier: Apache-2.0
// A user's own kernels and what is claimed of them: study.toml as a value.
//
// The structs' descriptions (json_fields.h) are the format of the file; template/README.md
// explains it to its users. A record keeps the same fields as JSON, so that it is judged as the
// study was when it was measured.
//
// Errors: InvalidArgument, one line "study.toml:LINE: FIELD: what is wrong"; NotFound where the
// folder has no study.
//
//   ASSIGN_OR_RETURN(const StudyFile file, StudyFile::Load("my_study"));
//   for (const StudyClaim& claim : file.study.claim) …

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ablations/base/json_fields.h"
#include "ablations/subjects/study/expression.h"
#include "ablations/subjects/study/toml_text.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

inline constexpr char kStudyFile[] = "study.toml";
inline constexpr char kStudyCache[] = ".warpledger";  // in the study's folder
inline constexpr char kOnGpu[] = "gpu";
inline constexpr char kOnCpu[] = "cpu";

// Text, or a number for it: what Evaluate() takes.
struct Expression {
  std::string text;
  friend bool operator==(const Expression&, const Expression&) = default;
};
nlohmann::ordered_json ToJson(const Expression& expression);
absl::Status FromJson(const nlohmann::ordered_json& json, const FieldPath& path,
                      Expression& expression);

struct StudyTensor {
  std::string name;
  std::string dtype;
  std::vector<Expression> shape;
  std::string values;  // of an input: how they are drawn

  void Visit(auto& f) {
    f("name", name, NotEmpty{}, PlainName{});
    f("dtype", dtype, OneOf("fp64", "fp32", "fp16", "bf16", "e4m3", "e5m2", "int32", "int8"));
    f("shape", shape);
    f("values", values, kOnlyWhereSet, OneOf("", "normal", "uniform", "ones", "integers"));
  }
  friend bool operator==(const StudyTensor&, const StudyTensor&) = default;
};

struct StudyProblem {
  std::string name;
  Parameters parameters;

  void Visit(auto& f) {
    f("name", name, NotEmpty{}, PlainName{});
    f("parameters", parameters, Each{Within{0, int64_t{1} << 40}}, EachName{PlainName{}});
  }
  friend bool operator==(const StudyProblem&, const StudyProblem&) = default;
};

// Of one call, for every problem.
struct StudyWork {
  Expression flops;
  Expression bytes;

  DESCRIBE_FIELDS(flops, bytes)
  friend bool operator==(const StudyWork&, const StudyWork&) = default;
};

struct StudyCheck {
  std::string reference;  // a Python file with a function of that name
  std::string variant;    // in its place: an arm's configuration, whose results are right
  double atol = 0;
  double rtol = 0;  // of the reference's largest element

  std::string WhyInvalid() const;
  void Visit(auto& f) {
    f("reference", reference, kOnlyWhereSet);
    f("variant", variant, kOnlyWhereSet);
    f("atol", atol, kOnlyWhereSet, Above{0});
    f("rtol", rtol, kOnlyWhereSet, Above{0});
  }
  friend bool operator==(const StudyCheck&, const StudyCheck&) = default;
};

struct StudyPrediction {
  std::string problem;
  double low = 0;
  double high = 0;
  std::string why;

  std::string WhyInvalid() const;
  void Visit(auto& f) {
    f("problem", problem);
    f("low", low, Above{0, "a ratio"});
    f("high", high, Above{0, "a ratio"});
    f("why", why, kOnlyWhereSet);
  }
  friend bool operator==(const StudyPrediction&, const StudyPrediction&) = default;
};

// Who says that a technique helps, and where.
struct StudySource {
  std::string name;
  std::string link;

  void Visit(auto& f) {
    f("name", name, NotEmpty{}, PlainName{});
    f("link", link, Must{"an address, as https://…", [](const std::string& text) {
                           return text.starts_with("https://") &&
                                  text.find_first_of(" ()<>") == text.npos;
                         }});
  }
  friend bool operator==(const StudySource&, const StudySource&) = default;
};

// One technique: what the candidate is compiled with, and what it must do.
struct StudyClaim {
  std::string id;
  std::string label;
  std::string mechanism;
  std::string on;  // the claim before it that it is on top of, where it is alone
  StudySource source;
  std::vector<std::string> define;     // -D of the candidate
  std::vector<std::string> otherwise;  // -D of whatever lacks the technique
  std::vector<std::string> sources;    // of the candidate, in place of the study's
  std::vector<std::string> flags;      // of the candidate, behind the study's
  StudyPrediction prediction;
  double gate = 1.05;
  std::string sass;  // regex over opcodes, of which the candidate must have more
  std::string fewer_sass;
  std::string ptx;       // regex over a line of PTX, likewise
  std::string launched;  // regex over what a call launches: the claim is about the launch alone
  std::string counter;   // by Nsight Compute's name: it rises, as `profile` shows
  std::string lower_counter;  // or falls
  std::string prior;
  std::string lesson;

  std::string WhyInvalid() const;
  void Visit(auto& f) {
    f("id", id, NotEmpty{}, PlainName{},
      Must{"a name without '+', ':', ',' and blanks",
           [](const std::string& text) { return text.find_first_of("+:, @") == text.npos; }});
    f("label", label, NotEmpty{});
    f("mechanism", mechanism, kOnlyWhereSet);
    f("on", on, kOnlyWhereSet);
    f("source", source, kOnlyWhereSet);
    f("define", define, kOnlyWhereSet, Each{NotEmpty{}});
    f("otherwise", otherwise, kOnlyWhereSet, Each{NotEmpty{}});
    f("sources", sources, kOnlyWhereSet, Each{NotEmpty{}});
    f("flags", flags, kOnlyWhereSet, Each{NotEmpty{}});
    f("prediction", prediction, kOnlyWhereSet);
    f("gate", gate, kOlderRecordsLack, Above{1, "a ratio"});
    f("sass", sass, kOnlyWhereSet, kPatternBytes);
    f("fewer_sass", fewer_sass, kOnlyWhereSet, kPatternBytes);
    f("ptx", ptx, kOnlyWhereSet, kPatternBytes);
    f("launched", launched, kOnlyWhereSet, kPatternBytes);
    f("counter", counter, kOnlyWhereSet);
    f("lower_counter", lower_counter, kOnlyWhereSet);
    f("prior", prior, kOnlyWhereSet);
    f("lesson", lesson, kOnlyWhereSet);
  }
  friend bool operator==(const StudyClaim&, const StudyClaim&) = default;
};

struct Study {
  int version = 1;
  std::string name;
  std::string device = kOnGpu;
  std::vector<std::string> sources;
  std::vector<std::string> flags;
  std::vector<std::string> architectures;
  std::string base_label = "As it is";
  Expression workspace = {"0"};  // bytes
  std::vector<StudyTensor> input;
  std::vector<StudyTensor> output;
  std::vector<StudyProblem> problem;
  StudyWork work;
  StudyCheck check;
  std::vector<StudyClaim> claim;

  // What several fields must obey together; "" where all is well.
  std::string WhyInvalid() const;
  // A name that means nothing, or two things: a file may not have it, an older record may.
  std::string WhyAmbiguous() const;
  void Visit(auto& f) {
    f("version", version, Must{"1, as this program reads", [](int v) { return v == 1; }});
    f("name", name, NotEmpty{}, PlainName{});
    f("device", device, kOlderRecordsLack, OneOf(kOnGpu, kOnCpu));
    f("sources", sources, Each{NotEmpty{}},
      Must{"at least one file", [](const auto& all) { return !all.empty(); }});
    f("flags", flags, kOnlyWhereSet, Each{NotEmpty{}});
    f("architectures", architectures, kOnlyWhereSet,
      Each{Must{"sm_NN, as sm_90",
                [](const std::string& text) { return text.starts_with("sm_"); }}});
    f("base_label", base_label, kOlderRecordsLack, NotEmpty{});
    f("workspace", workspace, kOlderRecordsLack);
    FIELDS(input, output, problem, work, check, claim);
  }
  friend bool operator==(const Study&, const Study&) = default;
};

// A study where it was written.
struct StudyFile {
  // Without "study.toml" at its end. Unknown fields are refused, with the nearest known one.
  static absl::StatusOr<StudyFile> Load(const std::string& folder);

  std::string folder;  // absolute
  Study study;
  TomlText toml;
};

// Bytes of an element; 0: there is no such dtype.
int64_t DtypeBytes(const std::string& dtype);
// Elements of a tensor on a problem. InvalidArgument opens with the field.
absl::StatusOr<int64_t> ElementsOf(const StudyTensor& tensor, const Parameters& parameters);

}  // namespace warpledger::ablations
