// SPDX-License-Identifier: Apache-2.0
// A subject on a device: inputs, checks and calls, as the worker needs them.
//
// Contract: one thread. What is called for one variant between BeforeVariant() and
// AfterVariant() changes nothing for another. An error of a call on a variant is the
// variant's doing, unless it is ResourceExhausted or Unavailable.
//
//   absl::StatusOr<std::unique_ptr<Bench>> bench = rig.Open(problem, inputs);
//   absl::StatusOr<std::unique_ptr<BenchVariant>> variant = (*bench)->Bind(arm, "");
//   if (*variant != nullptr) RETURN_IF_ERROR((*variant)->Call(set, stream));

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/plan/subject.h"
#include "ablations/record/record.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

struct CUstream_st;  // CUDA's

namespace warpledger::ablations {

// CUDA's cudaStream_t; null where calls run on the CPU.
using Stream = CUstream_st*;

// What a problem is given.
struct BenchInputs {
  std::string kind;                  // of Subject::InputKinds()
  std::vector<uint64_t> seeds = {};  // one for each set of values
  int rotation = 0;                  // sets in all: further ones are copies at other addresses
  uint64_t sample_seed = 0;          // of the rows that are checked where not all are
};

// A variant, bound to the inputs of a problem.
class BenchVariant {
 public:
  virtual ~BenchVariant() = default;

  // Makes what checks and calls need; may take seconds, and calls nothing.
  virtual absl::Status Prepare() = 0;
  // Runs it on the first set of inputs and judges what it gives. Who, where and on what is left
  // to the caller to fill in.
  virtual absl::StatusOr<Check> CheckCall() = 0;
  // Holds what `replay` leaves in every set's outputs against single calls, bit by bit. `replay`
  // must wait until its work is done.
  virtual absl::StatusOr<Check> CheckReplay(absl::FunctionRef<absl::Status()> replay) = 0;
  // Puts one call on the stream, on input set `set`.
  virtual absl::Status Call(int set, Stream stream) const = 0;
  // Whether calls are submitted one by one when they are timed, in place of a replayed graph.
  virtual bool IsSubmittedOneByOne() const { return false; }
  // What a line of calls.jsonl says of a kernel beyond its launch, from its first parameter.
  virtual std::string DescribeLaunch(std::string_view /*symbol*/, const void* /*parameter*/) const {
    return "";
  }
};

class Bench {
 public:
  virtual ~Bench() = default;

  virtual int sets() const = 0;
  // Null where the design need not have a variant of the arm for this problem. `fault`: what a
  // test of the engine plants in its calls; InvalidArgument for one that the subject doesn't know.
  virtual absl::StatusOr<std::unique_ptr<BenchVariant>> Bind(const PlannedArm& arm,
                                                             std::string_view fault) = 0;
  // Puts one call of a floor of the design that is no empty kernel on the stream.
  virtual absl::Status CallFloor(std::string_view name, int /*set*/, Stream /*stream*/) const {
    return absl::InternalError(absl::StrCat("there is no floor ", std::string(name)));
  }
  // Around each step of an arm; null: a floor or a delay.
  virtual absl::Status BeforeVariant(const BenchVariant* /*variant*/) { return absl::OkStatus(); }
  virtual absl::Status AfterVariant(const BenchVariant* /*variant*/) { return absl::OkStatus(); }
};

class Rig {
 public:
  virtual ~Rig() = default;

  virtual absl::StatusOr<std::unique_ptr<Bench>> Open(const ShapeInfo& problem,
                                                      const BenchInputs& inputs) = 0;
  // The configuration that who asks for no variant gets for a problem whose inputs are those of the
  // design, on a device of so many SMs; empty: there is no such choice.
  virtual std::string ChosenFor(const PlannedDesign& /*design*/, const ShapeInfo& /*problem*/,
                                int /*sm_count*/) const {
    return "";
  }
  // Writes the machine code, the resources and the launches of the design's variants to `dir`:
  // codegen.json, resources.json and launch.json.
  virtual absl::Status WriteEvidence(const PlannedDesign& design,
                                     const std::vector<ShapeInfo>& problems,
                                     const std::string& dir) const = 0;
};

}  // namespace warpledger::ablations
