// SPDX-License-Identifier: Apache-2.0
// Damage for a record's files: what a full disk, an editor, a bad merge or an
// unkind writer can do to bytes, lines and JSON values.
//
// Contract: pure functions of the text and the generator, so that a seed names
// one damage for ever. The result may equal the text by chance. `donor` is any
// other text of the same kind, for splices. No errors: text that is no JSON gets
// damage of bytes and lines only.
//
//   SplitMix64 random(MixSeed(seed, execution));
//   std::string damaged = Mutate(text, donor, random);

#pragma once

#include <string>
#include <string_view>

#include "kernels/common/random.h"

namespace warpledger::fuzz {

// Flips, overwrites, deletes, repeats or inserts bytes, or cuts the text off.
std::string MutateBytes(std::string_view text, SplitMix64& random);

// Deletes, repeats, swaps or cuts lines, or takes one from `donor`.
std::string MutateLines(std::string_view text, std::string_view donor, SplitMix64& random);

// Parses the text, or one of its lines, and replaces, deletes, repeats or swaps
// a random value in it: other types, numbers out of every range, deep nesting.
// Text without JSON comes back as it was.
std::string MutateJson(std::string_view text, SplitMix64& random);

// One of the three, JSON most often.
std::string Mutate(std::string_view text, std::string_view donor, SplitMix64& random);

}  // namespace warpledger::fuzz
