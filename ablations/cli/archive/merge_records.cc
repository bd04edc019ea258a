// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/archive/merge_records.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "ablations/base/files.h"
#include "ablations/base/json_text.h"
#include "ablations/cli/archive/close_record.h"
#include "ablations/judge/summarize.h"
#include "ablations/plan/fleet/fleet.h"
#include "ablations/record/record_files.h"
#include "ablations/record/record_lines.h"
#include "ablations/record/store.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

namespace fs = std::filesystem;

// What came back of a task.
struct Part {
  const FleetTask* task;
  std::string path;
  Record record;
};

// Of one board and one group, no shape twice.
using Joined = std::vector<const Part*>;

bool IsThere(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

std::vector<std::string> NamesOfShapes(const RunInfo& run) {
  std::vector<std::string> names;
  for (const ShapeInfo& shape : run.shapes) names.push_back(shape.name);
  return names;
}

// Why two records are not of one plan; the shapes may differ, and of records of two boards what
// belongs to a board.
std::string WhyApart(const RunInfo& one, RunInfo other) {
  other.shapes = one.shapes;
  if (other.gpu.uuid != one.gpu.uuid) other.gpu = one.gpu;
  return RunDifference(one, other);
}

class Fitting {
 public:
  Fitting(const std::string& dir, const Fleet& fleet) : dir_(dir), fleet_(fleet) {}

  void Look() {
    std::set<std::string> tasks;
    for (const FleetTask& task : fleet_.tasks) {
      tasks.insert(task.name);
      LookAt(task);
    }
    for (const std::string& path : RecordsIn(dir_)) {
      const std::string name = BoardOf(path);
      if (tasks.contains(name)) continue;
      misfits.push_back(absl::StrCat(path, ": is no task of this fleet"));
    }
  }

  std::vector<std::unique_ptr<Part>> parts;
  std::vector<std::string> misfits;
  std::vector<std::string> left_out;

 private:
  void LookAt(const FleetTask& task) {
    std::vector<std::string> unfinished;
    bool whole = false;
    const std::vector<std::string> records = RecordsOf(dir_, task);
    for (const std::string& path : records) {
      if (!HasRecordFile(path, kRunFile)) {
        // A kill before run.json was written leaves a folder without it.
        unfinished.push_back(absl::StrCat(path, ": has no ", kRunFile));
        continue;
      }
      absl::StatusOr<Record> record = LoadRecord(path);
      std::string why =
          record.ok() ? WhyNotOf(task, path, record->run) : std::string(record.status().message());
      if (why.empty()) {
        const absl::StatusOr<int64_t> missing = MissingBlocks(*record);
        if (!missing.ok()) {
          why = std::string(missing.status().message());
        } else if (*missing > 0) {
          unfinished.push_back(
              absl::StrCat(path, ": is unfinished, ", *missing, " blocks are missing"));
          continue;
        }
      }
      if (!why.empty()) {
        misfits.push_back(absl::StrCat(path, ": ", why));
        continue;
      }
      whole = true;
      parts.push_back(std::make_unique<Part>(Part{&task, path, *std::move(record)}));
    }
    absl::c_move(unfinished, std::back_inserter(whole ? left_out : misfits));
    if (records.empty()) misfits.push_back(absl::StrCat(task.name, ": no record came back"));
  }

  std::string WhyNotOf(const FleetTask& task, const std::string& path, const RunInfo& run) {
    if (run.gpu.uuid != BoardOf(path)) {
      return absl::StrCat("lies under the name of another board than its own, ", run.gpu.uuid);
    }
    if (const std::vector<std::string> shapes = NamesOfShapes(run); shapes != task.shapes) {
      return absl::StrCat("is of ", absl::StrJoin(shapes, ","), ", and its task of ",
                          absl::StrJoin(task.shapes, ","));
    }
    // Of the group, and of the board in it.
    for (const auto& key :
         {std::pair(task.group, std::string()), std::pair(task.group, run.gpu.uuid)}) {
      const auto [first, is_new] = firsts_.try_emplace(key, path, run);
      if (is_new) continue;
      const auto& [first_path, first_run] = first->second;
      if (const std::string why = WhyApart(first_run, run); !why.empty()) {
        return absl::StrCat("is no part of what ", first_path, " is of: ", why);
      }
    }
    return "";
  }

  const std::string& dir_;
  const Fleet& fleet_;
  std::map<std::pair<std::string, std::string>, std::pair<std::string, RunInfo>> firsts_;
};

// Where a shard stands in its group.
size_t PlaceOf(const Fleet& fleet, const FleetTask& task) {
  const auto first = absl::c_find_if(fleet.tasks, [&](const FleetTask& each) {
    return each.group == task.group && each.shapes == task.shapes;
  });
  return static_cast<size_t>(first - fleet.tasks.begin());
}

std::vector<Joined> Join(const Fleet& fleet, const std::vector<std::unique_ptr<Part>>& parts) {
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> places;
  std::vector<Joined> all;
  for (const std::unique_ptr<Part>& part : parts) {
    std::vector<size_t>& of_board = places[{part->task->group, part->record.run.gpu.uuid}];
    const auto lacks = [&](size_t place) {
      return absl::c_none_of(
          all[place], [&](const Part* other) { return other->task->shapes == part->task->shapes; });
    };
    auto place = absl::c_find_if(of_board, lacks);
    if (place == of_board.end()) {
      all.emplace_back();
      place = of_board.insert(of_board.end(), all.size() - 1);
    }
    all[*place].push_back(part.get());
  }
  for (Joined& joined : all) {
    absl::c_stable_sort(joined, [&](const Part* a, const Part* b) {
      return PlaceOf(fleet, *a->task) < PlaceOf(fleet, *b->task);
    });
  }
  return all;
}

// The inverse of ShardOf: first of each its first shape, then of each its second.
std::vector<ShapeInfo> ShapesOf(const Joined& joined) {
  std::vector<ShapeInfo> shapes;
  size_t longest = 0;
  for (const Part* part : joined) longest = std::max(longest, part->record.run.shapes.size());
  for (size_t i = 0; i < longest; ++i) {
    for (const Part* part : joined) {
      const std::vector<ShapeInfo>& of_part = part->record.run.shapes;
      if (i < of_part.size()) shapes.push_back(of_part[i]);
    }
  }
  return shapes;
}

// The rows of all parts, each once.
template <typename Row>
void Add(const std::optional<std::vector<Row>>& rows, std::vector<Row>* all) {
  if (!rows) return;
  for (const Row& row : *rows) {
    const auto json = ToJson(row);
    const bool known = absl::c_any_of(*all, [&](const Row& each) { return ToJson(each) == json; });
    if (!known) all->push_back(row);
  }
}

template <typename File>
absl::Status Write(const std::string& dir, const char* name, bool any, const File& file) {
  if (!any) return absl::OkStatus();
  return WriteFileAtomically(absl::StrCat(dir, "/", name), DumpFile(ToJson(file)));
}

absl::Status WriteFacts(const Joined& joined, const std::string& dir) {
  ResourcesFile resources;
  Codegen codegen;
  LaunchFile launch;
  PeersFile peers;
  bool any[4] = {};
  for (const Part* part : joined) {
    const Record& record = part->record;
    any[0] = any[0] || record.resources;
    any[1] = any[1] || record.codegen;
    any[2] = any[2] || record.launch;
    any[3] = any[3] || record.peers;
    Add(record.resources, &resources.instances);
    Add(record.launch, &launch.instances);
    if (record.codegen) {
      codegen.disassembler = record.codegen->disassembler;
      Add(std::optional(record.codegen->instances), &codegen.instances);
    }
    for (const PeerInfo& peer : record.peers.value_or(std::vector<PeerInfo>())) {
      const auto known = absl::c_find_if(
          peers.peers, [&](const PeerInfo& each) { return each.name == peer.name; });
      if (known == peers.peers.end()) {
        peers.peers.push_back(peer);
        continue;
      }
      known->available = known->available || peer.available;
      if (known->reason.empty()) known->reason = peer.reason;
      absl::c_copy(peer.checks, std::back_inserter(known->checks));
    }
  }
  RETURN_IF_ERROR(Write(dir, kResourcesFile, any[0], resources));
  RETURN_IF_ERROR(Write(dir, kCodegenFile, any[1], codegen));
  RETURN_IF_ERROR(Write(dir, kLaunchFile, any[2], launch));
  return Write(dir, kPeersFile, any[3], peers);
}

// As one run has them: by process, and there by shape.
template <typename Row>
std::vector<Row> InOrder(const Joined& joined, const std::vector<std::string>& shapes,
                         std::vector<Row> Record::*rows) {
  std::vector<Row> all;
  for (const Part* part : joined) absl::c_copy(part->record.*rows, std::back_inserter(all));
  std::stable_sort(all.begin(), all.end(), [&](const Row& a, const Row& b) {
    const auto key = [&](const Row& row) {
      int process = 0;
      if constexpr (requires { row.process; }) process = row.process;
      return std::tuple(process, IsPeer(row.arm), absl::c_find(shapes, row.shape));
    };
    return key(a) < key(b);
  });
  return all;
}

absl::Status WriteJoined(const Joined& joined, const std::vector<std::string>& argv,
                         const std::string& dir) {
  RunInfo run = joined[0]->record.run;
  run.shapes = ShapesOf(joined);
  run.argv = argv;
  for (const Part* part : joined) {
    run.argv.push_back(part->record.run.run_id);
    run.created_utc = std::min(run.created_utc, part->record.run.created_utc);
    run.git.dirty = run.git.dirty || part->record.run.git.dirty;
  }
  const std::vector<std::string> shapes = NamesOfShapes(run);
  ASSIGN_OR_RETURN(const std::unique_ptr<RecordWriter> writer, RecordWriter::Create(dir, run));
  for (const Check& check : InOrder(joined, shapes, &Record::checks)) {
    RETURN_IF_ERROR(writer->AppendCheck(check));
  }
  for (const BrokenArm& broken : InOrder(joined, shapes, &Record::broken)) {
    RETURN_IF_ERROR(writer->AppendBroken(broken));
  }
  for (const LaunchedCall& call : InOrder(joined, shapes, &Record::calls)) {
    RETURN_IF_ERROR(writer->AppendCall(call));
  }
  std::vector<Sample> block;
  for (Sample& sample : InOrder(joined, shapes, &Record::samples)) {
    if (!block.empty() && KeyOf(block[0]) != KeyOf(sample)) {
      RETURN_IF_ERROR(writer->AppendBlock(std::exchange(block, {})));
    }
    block.push_back(std::move(sample));
  }
  RETURN_IF_ERROR(writer->AppendBlock(std::move(block)));
  return WriteFacts(joined, dir);
}

absl::Status Copy(const std::string& record, const std::string& dir) {
  ASSIGN_OR_RETURN(const RecordFiles files, RecordFiles::Open(record));
  RETURN_IF_ERROR(CreateDirectories(dir));
  for (const std::string& name : files.Names()) {
    if (name == kSummaryFile || name == kSumsFile) continue;  // computed, and of a pack
    ASSIGN_OR_RETURN(const std::string contents, files.Read(name));
    RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(dir, "/", name), contents));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Merged::Record>> WriteAll(const std::vector<Joined>& all,
                                                     const std::vector<std::string>& argv,
                                                     const std::string& scratch,
                                                     const std::string& out) {
  std::vector<Merged::Record> written;
  for (const Joined& joined : all) {
    const RunInfo& run = joined[0]->record.run;
    std::string name = absl::StrCat(run.gpu.slug, "/", run.run_id);
    // Of two boards that began one task in the same second.
    if (IsThere(absl::StrCat(scratch, "/", name, kPackSuffix)))
      absl::StrAppend(&name, "-", run.gpu.uuid);
    const std::string dir = absl::StrCat(scratch, "/", name);
    RETURN_IF_ERROR(joined.size() == 1 ? Copy(joined[0]->path, dir)
                                       : WriteJoined(joined, argv, dir));
    RETURN_IF_ERROR(PackRecord(dir, {}).status());
    Merged::Record record = {
        .path = absl::StrCat(out, "/", name, kPackSuffix), .board = run.gpu.uuid, .parts = {}};
    for (const Part* part : joined) record.parts.push_back(part->path);
    written.push_back(std::move(record));
  }
  return written;
}

}  // namespace

absl::StatusOr<Merged> MergeFleet(const std::string& dir, const std::string& out,
                                  const MergeOptions& options) {
  ASSIGN_OR_RETURN(const Fleet fleet, LoadFleet(dir));
  if (IsThere(out)) {
    return absl::AlreadyExistsError(
        absl::StrCat(out, ": is there already; name a folder that is not"));
  }
  Fitting fitting(dir, fleet);
  fitting.Look();
  Merged merged = {.records = {}, .misfits = fitting.misfits, .left_out = fitting.left_out};
  if (fitting.parts.empty() || (!merged.misfits.empty() && !options.partial)) return merged;
  const std::string scratch = absl::StrCat(out, ".tmp.", static_cast<int64_t>(getpid()));
  absl::StatusOr<std::vector<Merged::Record>> written =
      WriteAll(Join(fleet, fitting.parts), options.argv, scratch, out);
  absl::Status status = written.status();
  std::error_code error;
  if (status.ok()) {
    fs::rename(scratch, out, error);
    if (error) status = absl::InternalError(absl::StrCat(out, ": ", error.message()));
  }
  if (!status.ok()) {
    fs::remove_all(scratch, error);
    return status;
  }
  merged.records = *std::move(written);
  return merged;
}

}  // namespace warpledger::ablations
