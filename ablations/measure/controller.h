// SPDX-License-Identifier: Apache-2.0
// The part of `warpledger run` that needs no GPU: starts worker processes one
// after another, each in turn followed by one for the peers, and is alone in
// writing the record.
//
// Contract
// - The same call on the same directory resumes after a kill at any moment; the
//   record then holds what one call would have written.
// - An arm that takes its worker down, gives no answer within `arm_limit_s` or is
//   refused by the driver is written to broken.jsonl with the reason. A new worker
//   of the same process goes on where the old one ended, without that arm on that
//   shape; so do all later workers, in this call and in resumed ones. Samples that
//   the arm gave before stay in the record.
// - A worker is blamed on no arm when it ends while none is running, or by a signal
//   that comes from outside (SIGKILL, SIGTERM, SIGINT, SIGHUP): the run ends with
//   the error, and the same call resumes it.
// - Peers are optional: what goes wrong with them is noted, and our own
//   measurements go on.
//
//   RETURN_IF_ERROR(RunControlled({.run = run, .out_dir = dir, .worker = {self, "worker"}}));

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ablations/record/record.h"
#include "absl/status/status.h"

namespace warpledger::ablations {

struct ControlledRun {
  RunInfo run;  // run.json, unless the directory holds one already
  std::string out_dir;
  std::vector<std::string> worker;  // program and arguments; speaks as worker.h says
  // The peers' program; empty where none are asked for. `why_no_peers`: they are
  // asked for and can't be started.
  std::vector<std::string> peers;
  std::string why_no_peers;
  std::vector<std::string> known_peers;  // whom peers.json speaks of, in this order
  double replay_us = 1000;
  int max_launches = 256;
  int silence_limit_s = 300;  // of a process that runs no arm, and of the peers
  int arm_limit_s = 60;       // from the moment that an arm is announced
  // Called with the directory once the record is open; may be null.
  std::function<absl::Status(const std::string& dir)> write_build_facts;
};

absl::Status RunControlled(const ControlledRun& run);

}  // namespace warpledger::ablations
