// SPDX-License-Identifier: Apache-2.0
// What the engine knows of what it measures.
//
// A subject lists problems, variants and designs, states the claims that its designs
// compare, and says what a record of it means. Everything here works without a GPU;
// rig.h is the subject on a device. Whoever judges or measures gets a Subject and
// knows no more: attention is one (subjects/sdpa), a stand-in on the CPU another.
//
// Contract: const, thread-safe, and the same answers in every process of a run.
// Names that a subject does not know give InvalidArgument with the nearest known ones.
//
//   const absl::StatusOr<PlannedDesign> design = subject.FindDesign("ladder");
//   const Claim* claim = subject.FindClaim(design->arms[1].toggle);

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/plan/infeasible_cell.h"
#include "ablations/record/record.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace warpledger::ablations {

// What a technique must do to the machine code or to the launch, on against off.
struct ClaimEvidence {
  std::string_view opcodes = {};   // regex over opcodes; empty: only that the code differs
  bool fewer_opcodes = false;      // fewer of them with the technique, else more
  std::string_view launched = {};  // regex over the lines of calls.jsonl; empty: not looked at
  bool launched_vanishes = false;
};

// The effect that was foreseen before the first run: a range of time(off) / time(on).
struct ClaimPrediction {
  std::string_view problem = {};
  double low = 0;
  double high = 0;
  std::string_view why = {};
  bool blind = true;  // false: prototypes had run
  // A date: no record before it is held against the range. Empty: each is.
  std::string_view since = {};
};

// The microbenchmark that isolates a technique, by its case without it and with it; the value of
// `off` counts `off_factor` units of the other's.
struct ClaimMicro {
  std::string_view on = {};
  std::string_view off = {};  // empty: the case shows the mechanism's cost alone
  double off_factor = 1;
};

// Who says that a technique helps: a book, a page or a talk, and where it is.
struct ClaimSource {
  std::string_view name = {};
  std::string_view link = {};
};

// What a record can show to be true of a technique, or false. Texts are of whole sentences.
struct Claim {
  std::string_view id;  // and the family of tests of all steps on it
  std::string_view label;
  std::string_view mechanism = {};
  bool control = false;  // planted, no technique
  double gate = 1.10;    // time ratio needed to adopt it
  ClaimPrediction predicted = {};
  ClaimEvidence evidence = {};
  ClaimMicro micro = {};
  ClaimSource source = {};
  std::string_view prior = {};   // what others reported
  double prior_us = 0;           // on the GPU that `prior` names
  std::string_view lesson = {};  // what the measurements taught
  // It says which kernels are launched, or how: the machine code of both sides may be one.
  bool launch_side = false;
  // On some shapes it has nothing to do: both sides run one kernel there.
  bool may_do_nothing = false;
  bool keeps_bits = false;  // it claims to leave every bit of the results
};

// Two arms of a record that differ by a claim which no step of its design is.
struct DeclaredPair {
  std::string toggle;
  std::string family;  // of tests
  std::string base;
  std::string candidate;
  ClaimPrediction predicted = {};
};

// One thing that is timed. reports/RECORD.md says what each role is.
struct PlannedArm {
  std::string name;
  std::string config = {};  // printed
  std::string role;
  std::string toggle = {};
  std::string base = {};
  int64_t spin_cycles = 0;  // a delay of so many clock cycles at the end of each replay; 0: none
  bool spin_alone = false;  // replays of nothing but the delay

  Arm Recorded() const { return {name, spin_alone ? "" : config, role, toggle, base}; }
};

// How the arms of a design span their techniques.
enum class DesignKind {
  kOther,
  kCumulative,  // each technique on top of all before it, as predictions speak of them
  kFactorial,   // every combination: attribution and interactions
  kFractional,  // a part of them: main effects
};

struct PlannedDesign {
  std::string name;
  std::string label;
  std::vector<PlannedArm> arms;
  std::vector<std::string> floors;  // timed beside the arms, by name, kFloorArm among them
  bool peers = true;                // the subject's peers can stand beside them
};

// What of a design's machine code this build holds.
struct CodeOfDesign {
  bool any = true;                        // false: it was built without what compiles such code
  std::vector<std::string> missing = {};  // by name
  std::string how_to_build = {};          // the command
};

class Subject {
 public:
  virtual ~Subject() = default;

  // As run.json says it.
  virtual std::string_view name() const = 0;
  // What a record and a worker need to make the subject again, where it is no part of the program;
  // null otherwise (known_subjects.h).
  virtual nlohmann::ordered_json Definition() const { return nullptr; }
  // The command that starts a worker (measure/worker.h); empty: it is one of this program.
  virtual std::vector<std::string> Worker() const { return {}; }

  // --- Claims: each technique once, in the order of bits in a factorial.
  virtual absl::Span<const Claim> claims() const = 0;
  virtual std::string_view ClaimsFile() const { return ""; }  // the source that states them
  const Claim* FindClaim(std::string_view id) const {         // null: there is none
    for (const Claim& claim : claims()) {
      if (claim.id == id) return &claim;
    }
    return nullptr;
  }
  // Whether the claim's prediction speaks of the arm `candidate` of a design.
  virtual bool IsPredictedFor(const Claim& claim, std::string_view design,
                              std::string_view candidate) const = 0;

  // The claims that two of `arms` differ by and no arm is a step of.
  virtual std::vector<DeclaredPair> DeclaredPairs(const std::vector<Arm>& /*arms*/) const {
    return {};
  }

  // --- Designs
  virtual std::vector<PlannedDesign> Designs() const = 0;
  virtual std::string DefaultDesign() const { return "ladder"; }
  // One of Designs(), or one that its name describes.
  virtual absl::StatusOr<PlannedDesign> FindDesign(std::string_view name) const = 0;
  virtual DesignKind KindOf(std::string_view design) const = 0;
  // What a design would have if no rule forbade it; nullopt where its name means nothing today.
  virtual std::optional<std::vector<InfeasibleCell>> Infeasible(std::string_view design) const = 0;

  // --- Problems
  // "all", comma-separated names, or a group that the subject names.
  virtual absl::StatusOr<std::vector<ShapeInfo>> ParseProblems(std::string_view list) const = 0;
  // Whether a record's problem is one: InvalidArgument names the parameter.
  virtual absl::Status CheckProblem(const ShapeInfo& problem) const = 0;
  // What pages and pictures call a problem of a record.
  virtual std::string_view ShownName(std::string_view problem) const { return problem; }
  // A summary's problems say it for pictures, as "shown", where it is not their name.
  void AddShownNames(std::vector<ShapeInfo>& problems) const {
    for (ShapeInfo& problem : problems) {
      const std::string_view shown = ShownName(problem.name);
      if (shown != problem.name) problem.fields["shown"] = shown;
    }
  }
  // The kinds of inputs that variants are checked on; the first is also what is timed.
  virtual std::vector<std::string> InputKinds() const = 0;

  // --- Peers: other implementations, which a program of their own times
  virtual std::vector<std::string> Peers() const { return {}; }
  // Those that a run times unless it is told which: the others need what few machines have.
  virtual std::vector<std::string> PeersUnasked() const { return Peers(); }
  // Bits of an element of Q, K and V where a peer multiplies in another type than the problem's.
  virtual std::optional<int64_t> PeerKvBits(std::string_view /*arm*/) const { return std::nullopt; }
  virtual std::string PeersProgram() const { return ""; }  // for FindProgramFile()

  // --- This build
  // nullopt: its variants have no code that a build can lack.
  virtual std::optional<CodeOfDesign> CodeOf(const PlannedDesign& /*design*/) const {
    return std::nullopt;
  }
  // InvalidArgument where the design can't be timed on a problem, even with all of its code.
  virtual absl::Status CheckMeasurable(const PlannedDesign& /*design*/,
                                       const ShapeInfo& problem) const {
    return CheckProblem(problem);
  }
  // What tests of the engine can plant in a variant's calls, by name.
  virtual std::vector<std::string> Faults() const { return {}; }

  // --- Variants, by the printed configurations that arms hold
  // The configuration that an arm's name, or one that a person wrote, stands for.
  virtual absl::StatusOr<std::string> FindVariant(std::string_view name) const = 0;
  // What a person calls it, where it is no step of a design; empty: by its name.
  virtual std::string LabelOf(std::string_view config) const = 0;
  // What the machine code may be called that runs it on a problem; the first that exists is it.
  virtual std::vector<std::string> CodeNames(const std::string& config,
                                             const ShapeInfo& problem) const = 0;
  // Whether the variant has the technique on, at any level.
  virtual bool IsOn(std::string_view config, const Claim& claim) const = 0;
  // Where a design need not have a variant for a problem: why one without has none. Empty where
  // every design has.
  virtual std::string WhyNoVariant(const ShapeInfo& problem) const = 0;
  // Bits of an element of K and V where they are not of the problem's type.
  virtual std::optional<int64_t> KvBits(const std::string& /*config*/) const {
    return std::nullopt;
  }
  // The name of the arithmetic ceiling that it stands under (judge/summarize.h); empty: unknown.
  virtual std::string RoofOf(const std::string& /*config*/) const { return ""; }
  // What of it reaches its launch and no machine code, printed.
  virtual std::string LaunchPart(const std::string& /*config*/) const { return ""; }
};

}  // namespace warpledger::ablations
