// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/peers_merge.h"

#include <gmock/gmock.h>

#include "ablations/base/files.h"
#include "ablations/base/subprocess.h"
#include "ablations/record/store.h"
#include "ablations/subjects/sdpa/subject.h"
#include "absl/time/time.h"
#include "tests/ablations/record/record_fixture.h"
#include "tests/status_matchers.h"

namespace warpledger::ablations {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const std::vector<std::string> kPeers = {"flash", "cudnn", "efficient", "math"};

PeerInfo Line(const std::string& name, const std::string& shape, bool available,
              const std::string& reason = "") {
  PeerInfo info = {name, "torch 2", available, reason, {}};
  if (available) info.checks.push_back({shape, true, 1e-5, 2e-5});
  return info;
}

TEST(PeerFindingsTest, LinesOfOneBackendMergeIntoOneEntryInTheListsOrder) {
  PeerFindings findings(kPeers);
  EXPECT_TRUE(findings.empty());
  findings.Take(Line("peer:math", "small", true));
  findings.Take(Line("peer:flash", "small", false, "small: no kernel"));
  findings.Take(Line("peer:flash", "small", false, "small: no kernel"));
  findings.Take(Line("peer:flash", "long", true));
  const std::vector<PeerInfo> all = findings.All();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "peer:flash");
  EXPECT_TRUE(all[0].available);
  EXPECT_EQ(all[0].reason, "small: no kernel");
  ASSERT_EQ(all[0].checks.size(), 1u);
  EXPECT_EQ(all[0].checks[0].shape, "long");
  EXPECT_EQ(all[1].name, "peer:math");
}

TEST(PeerFindingsTest, WhatAnEarlierCallFoundSurvivesAKill) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  const PeerFindings none = LoadPeerFindings(dir.path(), kPeers).value();
  EXPECT_TRUE(none.empty());

  PeerFindings before = none;
  before.Take(Line("peer:cudnn", "small", true));
  ASSERT_TRUE(
      WriteFileAtomically(dir.path() + "/" + kPeersFile, DumpFile(ToJson(PeersFile{before.All()})))
          .ok());

  PeerFindings after = LoadPeerFindings(dir.path(), kPeers).value();
  after.Take(Line("peer:cudnn", "long", true));
  const std::vector<PeerInfo> all = after.All();
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].checks.size(), 2u);
  EXPECT_EQ(all[0].checks[0].shape, "small");
  EXPECT_EQ(all[0].checks[1].shape, "long");
}

TEST(PeerFindingsTest, ADamagedFileIsAnErrorAndNotOverwritten) {
  const ScratchFolder dir = ScratchFolder::Make().value();
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/" + kPeersFile, "{").ok());
  EXPECT_THAT(LoadPeerFindings(dir.path(), kPeers),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(kPeersFile)));
}

TEST(PeerFindingsTest, AMissingPyTorchIsTheReasonOfEveryBackend) {
  PeerFindings findings(kPeers);
  findings.Take({"peer:torch", "", false, "PyTorch can't be imported", {}});
  const std::vector<PeerInfo> all = findings.All();
  ASSERT_EQ(all.size(), kPeers.size());
  for (const PeerInfo& info : all) {
    EXPECT_FALSE(info.available);
    EXPECT_EQ(info.reason, "not measured: PyTorch can't be imported");
  }
}

TEST(PeerFindingsTest, AReasonForNotAskingGoesOnceTheBackendAnswersAndComesForNoneThatDid) {
  PeerFindings findings(kPeers);
  findings.NotMeasured("no python3");
  findings.Take(Line("peer:flash", "small", true));
  EXPECT_EQ(findings.All()[0].reason, "");
  EXPECT_EQ(findings.All()[1].reason, "not measured: no python3");
  findings.NotMeasured("killed");
  EXPECT_EQ(findings.All()[0].reason, "");
  EXPECT_TRUE(findings.All()[0].available);
  EXPECT_EQ(findings.All()[1].reason, "not measured: killed");
}

// The list has two homes, because C++ asks and Python answers; this holds them
// together.
TEST(PeerListTest, PeersPyKnowsTheSameBackends) {
  const std::string script = FindProgramFile("ablations/subjects/sdpa/peers/peers.py").value();
  std::vector<std::string> listed;
  const absl::Status status =
      RunLines({"python3", script, "--list"}, "", absl::Seconds(60), [&](std::string_view line) {
        listed.emplace_back(line);
        return absl::OkStatus();
      });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(listed, ElementsAreArray(SdpaSubject().Peers()));
}

}  // namespace
}  // namespace warpledger::ablations
