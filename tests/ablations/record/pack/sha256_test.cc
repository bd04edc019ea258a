// SPDX-License-Identifier: Apache-2.0
#include "ablations/record/pack/sha256.h"

#include <string>

#include "gtest/gtest.h"

namespace warpledger::ablations {
namespace {

TEST(Sha256, IsTheStandards) {
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, IsLibmdsAtEveryLength) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(Sha256(bytes), Sha256ByLibmd(bytes)) << i << " bytes";
    bytes.push_back(static_cast<char>(i * i * 7 + 3));
  }
}

}  // namespace
}  // namespace warpledger::ablations
