// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/controller.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/base/progress.h"
#include "ablations/base/subprocess.h"
#include "ablations/measure/peers_merge.h"
#include "ablations/measure/worker.h"
#include "ablations/plan/stopping.h"
#include "ablations/record/record_lines.h"
#include "ablations/record/store.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

// A signal that the arm's own work can't have raised.
bool IsFromOutside(int signal_number) {
  return signal_number == SIGKILL || signal_number == SIGTERM || signal_number == SIGINT ||
         signal_number == SIGHUP;
}

class Controller {
 public:
  explicit Controller(const ControlledRun& plan) : plan_(plan) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(writer_, RecordWriter::Open(plan_.out_dir, plan_.run));
    ASSIGN_OR_RETURN(peers_, LoadPeerFindings(plan_.out_dir, plan_.known_peers));
    if (plan_.write_build_facts) RETURN_IF_ERROR(plan_.write_build_facts(plan_.out_dir));

    const int64_t arms = static_cast<int64_t>(run().arms.size());
    const int64_t groups = run().alone ? arms : WantsPeers() ? 2 : 1;
    const int64_t total = groups * run().processes * static_cast<int64_t>(run().shapes.size()) *
                          run().blocks_per_process;
    Progress progress(run().alone ? "visits" : "blocks", total,
                      static_cast<int64_t>(writer_->CompletedBlocks().size()));
    progress_ = &progress;
    if (writer_->dropped().Any()) {
      progress.Note(absl::StrCat("cut off an unfinished block of ", writer_->dropped().sample_lines,
                                 " samples; measuring it again"));
    }
    for (const BrokenArm& broken : writer_->Broken()) {
      progress.Note(absl::StrCat("left out, as in the call before: ", broken.arm, " on ",
                                 broken.shape, ": ", broken.reason));
    }
    for (int process = 0; process < run().processes; ++process) {
      RETURN_IF_ERROR(Look(process));
      // Alone, peers and arms are compared: they change places as arms do.
      const bool peers_first = run().alone && process % 2 == 1;
      if (WantsPeers() && peers_first) RETURN_IF_ERROR(RunPeers(process));
      RETURN_IF_ERROR(RunOurs(process));
      if (WantsPeers() && !peers_first) RETURN_IF_ERROR(RunPeers(process));
    }
    return absl::OkStatus();
  }

 private:
  // What the worker said that it is doing.
  struct Running {
    std::string arm;
    std::string shape;
    std::string doing;

    DESCRIBE_FIELDS(arm, shape, doing)
  };

  // Where the worker said that there is no variant.
  struct Absent {
    std::string arm;
    std::string shape;

    DESCRIBE_FIELDS(arm, shape)
    friend auto operator<=>(const Absent&, const Absent&) = default;
  };

  const RunInfo& run() const { return writer_->run(); }
  bool WantsPeers() const { return !plan_.peers.empty() || !plan_.why_no_peers.empty(); }

  bool Done(int process, const std::string& shape, int block, bool peers) const {
    return writer_->CompletedBlocks().contains(
        {.process = process, .shape = shape, .block = block, .peers = peers});
  }
  bool Visited(int process, const std::string& shape, int block, const std::string& arm) const {
    return writer_->CompletedBlocks().contains({.process = process,
                                                .shape = shape,
                                                .block = block,
                                                .peers = absl::StartsWith(arm, kPeerPrefix),
                                                .arm = arm});
  }

  absl::Status Append(std::vector<Sample> samples) {
    const std::string where = absl::StrCat(
        "process ", samples[0].process + 1, " of ", run().processes, ", ", samples[0].shape,
        samples[0].IsVisit()                            ? ", " + samples[0].arm
        : absl::StartsWith(samples[0].arm, kPeerPrefix) ? ", peers"
                                                        : "");
    const Sample first = samples[0];
    RETURN_IF_ERROR(writer_->AppendBlock(std::move(samples)));
    progress_->Step(where);
    if (first.IsStarved()) {
      progress_->Note(absl::StrFormat(
          "This visit is INVALID: the GPU waited for the host for %.2g%% of it, and %g%% is "
          "allowed. Keep the host's cores free.",
          100 * *first.idle_share, 100 * Sample::kMostIdle));
    }
    return absl::OkStatus();
  }

  // Finds the shapes that need no process from this one on. Of a resumed run the
  // samples may be ahead of `process`; those of a stopped shape never are.
  absl::Status Look(int process) {
    if (!run().stopping) return absl::OkStatus();
    const std::vector<int>& looks = run().stopping->looks;
    if (std::find(looks.begin(), looks.end(), process) == looks.end()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const Record record, LoadRecord(plan_.out_dir));
    for (const ShapeInfo& shape : run().shapes) {
      const StoppingState state = StateOf(record.run, record.samples, shape.name);
      if (!state.stopped || state.processes > process || !stopped_.insert(shape.name).second) {
        continue;
      }
      progress_->Note(absl::StrFormat(
          "%s: done after %d of %d processes, every interval is within %.2g%%", shape.name,
          state.processes, run().processes, 100 * state.worst_half_width));
    }
    return absl::OkStatus();
  }

  // --- Our own arms -------------------------------------------------------------

  // The job of what the record lacks of a process; nullopt when that is nothing.
  std::optional<WorkerJob> JobFor(int process) const {
    WorkerJob job;
    job.subject = std::string(run().SubjectName());
    job.definition = run().definition;
    job.design = run().design;
    job.process = process;
    job.seed = run().seed;
    job.blocks = run().blocks_per_process;
    job.replay_us = plan_.replay_us;
    job.max_launches = plan_.max_launches;
    job.cache = run().cache;
    job.alone = run().alone;
    job.planted = run().planted;
    for (const BrokenArm& broken : writer_->Broken()) {
      job.excluded.emplace(broken.arm, broken.shape);
    }
    if (job.alone) return AddVisits(std::move(job));
    for (const ShapeInfo& shape : run().shapes) {
      if (stopped_.contains(shape.name)) continue;
      job.shapes.push_back(shape.name);
      for (int block = 0; block < job.blocks; ++block) {
        if (Done(process, shape.name, block, false)) job.done.emplace(shape.name, block);
      }
    }
    const size_t planned = job.shapes.size() * static_cast<size_t>(job.blocks);
    if (job.done.size() == planned) return std::nullopt;
    return job;
  }

  // The same of a run of visits: the shapes that lack some, and what these have.
  std::optional<WorkerJob> AddVisits(WorkerJob job) const {
    for (const ShapeInfo& shape : run().shapes) {
      bool missing = false;
      std::set<std::pair<std::pair<std::string, std::string>, int>> visited;
      for (const Arm& arm : run().arms) {
        if (arm.role == kRolePeer || job.excluded.contains({arm.name, shape.name}) ||
            absent_.contains({arm.name, shape.name})) {
          continue;
        }
        for (int block = 0; block < job.blocks; ++block) {
          if (Visited(job.process, shape.name, block, arm.name)) {
            visited.insert({{arm.name, shape.name}, block});
          } else {
            missing = true;
          }
        }
      }
      if (!missing) continue;
      job.shapes.push_back(shape.name);
      job.visited.merge(visited);
    }
    if (job.shapes.empty()) return std::nullopt;
    return job;
  }

  // Starts workers until one does the whole job. Each one that ends early takes an
  // arm out of the job, so there are never more of them than arms and shapes.
  absl::Status RunOurs(int process) {
    while (const std::optional<WorkerJob> job = JobFor(process)) {
      running_.reset();
      fault_.reset();
      ProcessEnd end;
      const absl::Status status = RunLines(
          plan_.worker, DumpLine(ablations::ToJson(*job)),
          [this] { return absl::Seconds(running_ ? plan_.arm_limit_s : plan_.silence_limit_s); },
          [this](std::string_view line) { return TakeWorkerLine(line); }, &end);
      if (status.ok()) {
        if (!JobFor(process)) return absl::OkStatus();
        return absl::InternalError(
            absl::StrCat(plan_.worker[0], ": the worker of process ", process,
                         " ended well without having measured all of its blocks"));
      }
      std::optional<BrokenArm> broken = WhoBroke(process, end);
      if (!broken) return status;
      if (job->excluded.contains({broken->arm, broken->shape})) {
        return absl::InternalError(
            absl::StrCat("the worker ran ", broken->arm, " on ", broken->shape,
                         ", which it was told to leave out: ", std::string(status.message())));
      }
      progress_->Note(absl::StrCat("BROKEN: ", broken->arm, " on ", broken->shape, ": ",
                                   broken->reason, "; going on without it"));
      RETURN_IF_ERROR(writer_->AppendBroken(*broken));
    }
    return absl::OkStatus();
  }

  // The arm that ended the worker; nullopt when it was none's doing.
  std::optional<BrokenArm> WhoBroke(int process, const ProcessEnd& end) const {
    if (end.refused) return std::nullopt;
    if (fault_ && !IsFloor(fault_->arm)) return fault_;
    if (!running_ || IsFloor(running_->arm)) return std::nullopt;
    BrokenArm broken = {.process = process,
                        .arm = running_->arm,
                        .shape = running_->shape,
                        .kind = "",
                        .doing = running_->doing,
                        .reason = ""};
    if (end.silent) {
      broken.kind = "no_answer";
      broken.reason =
          absl::StrCat("no answer within ", plan_.arm_limit_s, " s while ", running_->doing);
    } else if (end.signal != 0 && !IsFromOutside(end.signal)) {
      broken.kind = "crash";
      broken.reason = absl::StrCat("its process was ended by signal ", end.signal, " (",
                                   strsignal(end.signal), ") while ", running_->doing);
    } else {
      return std::nullopt;
    }
    return broken;
  }

  absl::Status TakeWorkerLine(std::string_view line) {
    ASSIGN_OR_RETURN(nlohmann::ordered_json json, ParseJson(line));
    const FieldPath path;
    if (json.contains("running")) {
      return json_fields::Read(json["running"], path.Field("running"), running_);
    }
    if (json.contains("fault")) {
      return json_fields::Read(json["fault"], path.Field("fault"), fault_);
    }
    if (json.contains("absent")) {
      ASSIGN_OR_RETURN(Absent absent, FromJson<Absent>(json["absent"]));
      absent_.insert(std::move(absent));
      return absl::OkStatus();
    }
    if (json.contains("check")) {
      ASSIGN_OR_RETURN(Check check, FromJson<Check>(json["check"]));
      if (!check.correct) {
        progress_->Note(
            absl::StrCat("BROKEN: ", check.arm, " on ", check.shape, ": ", check.reason));
      }
      return writer_->AppendCheck(check);
    }
    if (json.contains("call")) return TakeCall(json["call"]);
    if (!json.contains("block")) {
      return absl::InternalError(
          absl::StrCat("a worker printed what is none of its lines: ", std::string(line)));
    }
    std::vector<Sample> samples;
    for (const auto& entry : json["block"]) {
      ASSIGN_OR_RETURN(Sample sample, FromJson<Sample>(entry));
      samples.push_back(std::move(sample));
    }
    if (samples.empty()) return absl::InternalError("a worker printed a block without samples");
    return Append(std::move(samples));
  }

  absl::Status TakeCall(const nlohmann::ordered_json& json) {
    ASSIGN_OR_RETURN(const LaunchedCall call, FromJson<LaunchedCall>(json));
    return writer_->AppendCall(call);
  }

  // --- Peers --------------------------------------------------------------------

  absl::Status RunPeers(int process) {
    absl::Status status = plan_.why_no_peers.empty() ? RunPeersProgram(process)
                                                     : absl::NotFoundError(plan_.why_no_peers);
    if (!status.ok()) {
      progress_->Note(absl::StrCat("peers not measured: ", status.message()));
      peers_.NotMeasured(std::string(status.message()));
    }
    return WritePeers();
  }

  // The shapes of which the record lacks peers' blocks, with the sets to rotate over.
  absl::StatusOr<nlohmann::ordered_json> PeersShapes(int process) const {
    nlohmann::ordered_json shapes = nlohmann::ordered_json::array();
    for (const ShapeInfo& shape : run().shapes) {
      if (stopped_.contains(shape.name)) continue;
      bool missing = false;
      nlohmann::ordered_json visited = nlohmann::ordered_json::array();
      for (int block = 0; block < run().blocks_per_process; ++block) {
        if (!run().alone) {
          missing = missing || !Done(process, shape.name, block, true);
          continue;
        }
        for (const Arm& arm : run().arms) {
          if (arm.role != kRolePeer) continue;
          if (Visited(process, shape.name, block, arm.name)) {
            visited.push_back({arm.name.substr(std::strlen(kPeerPrefix)), block});
          } else {
            missing = true;
          }
        }
      }
      if (!missing) continue;
      nlohmann::ordered_json json = ablations::ToJson(shape);
      if (run().alone) json["visited"] = std::move(visited);
      ASSIGN_OR_RETURN(const int rotation,
                       RotationSets(shape.min_bytes(), run().cache, run().gpu.l2_bytes));
      json["rotation"] = rotation;
      shapes.push_back(std::move(json));
    }
    return shapes;
  }

  absl::Status RunPeersProgram(int process) {
    ASSIGN_OR_RETURN(nlohmann::ordered_json shapes, PeersShapes(process));
    if (shapes.empty()) return absl::OkStatus();
    std::vector<std::string> backends;
    for (const Arm& arm : run().arms) {
      if (arm.role == kRolePeer) backends.push_back(arm.name.substr(std::strlen(kPeerPrefix)));
    }
    nlohmann::ordered_json request = {
        {"shapes", shapes},           {"process", process},
        {"seed", run().seed},         {"blocks", run().blocks_per_process},
        {"input_sets", kInputSets},   {"target_replay_us", static_cast<int64_t>(plan_.replay_us)},
        {"min_launches", kInputSets}, {"max_launches", plan_.max_launches},
        {"cache", run().cache},       {"peers", backends}};
    if (run().alone) request["alone"] = ablations::ToJson(*run().alone);
    std::vector<Sample> block;
    const auto flush = [&]() -> absl::Status {
      if (block.empty()) return absl::OkStatus();
      const bool done = writer_->CompletedBlocks().contains(KeyOf(block[0]));
      std::vector<Sample> samples = std::move(block);
      block.clear();
      return done ? absl::OkStatus() : Append(std::move(samples));
    };
    RETURN_IF_ERROR(RunLines(plan_.peers, DumpLine(request), absl::Seconds(plan_.silence_limit_s),
                             [&](std::string_view line) -> absl::Status {
                               ASSIGN_OR_RETURN(nlohmann::ordered_json json, ParseJson(line));
                               if (json.contains("peer")) return TakePeer(json["peer"]);
                               if (json.contains("call")) return TakeCall(json["call"]);
                               ASSIGN_OR_RETURN(Sample sample, FromJson<Sample>(json));
                               if (!block.empty() && (block[0].shape != sample.shape ||
                                                      block[0].block != sample.block)) {
                                 RETURN_IF_ERROR(flush());
                               }
                               const bool visit = sample.IsVisit();
                               block.push_back(std::move(sample));
                               return visit ? flush() : absl::OkStatus();
                             }));
    return flush();
  }

  // A peer's check is on disk before its first sample is: after a kill, blocks
  // that are done are not asked for again, and neither is their check.
  absl::Status TakePeer(const nlohmann::ordered_json& json) {
    ASSIGN_OR_RETURN(PeerInfo peer, FromJson<PeerInfo>(json));
    if (!peer.available && refused_.insert(peer.name).second) {
      progress_->Note(absl::StrCat(peer.name, " is not measured: ", peer.reason));
    }
    peers_.Take(peer);
    return WritePeers();
  }

  absl::Status WritePeers() {
    // A run that had nothing to ask the peers for leaves the file alone.
    if (peers_.empty()) return absl::OkStatus();
    return WriteFileAtomically(absl::StrCat(plan_.out_dir, "/", kPeersFile),
                               DumpFile(ablations::ToJson(PeersFile{peers_.All()})));
  }

  const ControlledRun& plan_;
  std::unique_ptr<RecordWriter> writer_;
  Progress* progress_ = nullptr;
  PeerFindings peers_;
  std::set<std::string> refused_;  // peers of which this call has said why they are not measured
  std::set<std::string> stopped_;  // shapes that need no further process
  std::set<Absent> absent_;
  std::optional<Running> running_;
  std::optional<BrokenArm> fault_;
};

}  // namespace

absl::Status RunControlled(const ControlledRun& run) { return Controller(run).Run(); }

}  // namespace warpledger::ablations
