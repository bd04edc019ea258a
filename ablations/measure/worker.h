// SPDX-License-Identifier: Apache-2.0
// The process that owns the device: checks and times the arms of a design.
//
// It reads a job from its standard input and prints one JSON object per line:
//   {"running": {arm, shape, doing}}  before anything of that arm is launched
//   {"running": null}                 what follows is no arm's doing
//   {"check": …}                      one line of correctness.jsonl
//   {"call": …}                       one line of calls.jsonl
//   {"block": [sample, …]}            the samples of one block, for samples.jsonl; of a job that
//                                     times each arm alone, the sample of one visit
//   {"absent": {arm, shape}}          the arm has no variant there, so that no visit of it
//                                     will come
//   {"fault": …}                      one line of broken.jsonl: the arm could not be run; the
//                                     process ends
// The controller (controller.h) starts several, one after another, and writes what
// they print: a worker that crashes loses at most the block in flight. After a
// fault the GPU's context is lost, so the worker does not try to go on: the
// controller starts another one without the arm. A worker that dies or hangs
// without a fault line was running the arm that it announced last.

#pragma once

#include "ablations/plan/job.h"
#include "ablations/plan/machine.h"
#include "ablations/plan/rig.h"
#include "ablations/plan/subject.h"
#include "absl/status/status.h"

namespace warpledger::ablations {

// Does the job, printing lines to standard output. A fault of an arm ends the process from
// within, with kWorkerFaultExit.
inline constexpr int kWorkerFaultExit = 10;
absl::Status RunWorker(const WorkerJob& job, const Subject& subject, Rig& rig, Machine& machine);

}  // namespace warpledger::ablations
