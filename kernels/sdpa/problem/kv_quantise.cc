// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/problem/kv_quantise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "kernels/common/parallel.h"
#include "kernels/sdpa/dtype/fp8.h"

namespace warpledger::sdpa {
namespace {

const Fp8Format& FormatOf(KvFormat format) { return format == KvFormat::kE5m2 ? kE5m2 : kE4m3; }

float NumberOf(KvFormat format, int code) {
  if (format == KvFormat::kUint8) return static_cast<float>(code - kUint8Zero);
  return Fp8ToFloat(FormatOf(format), static_cast<uint8_t>(code));
}

using CodeTable = std::array<float, 256>;

CodeTable MakeTable(KvFormat format) {
  CodeTable table;
  for (int code = 0; code < 256; ++code) table[code] = NumberOf(format, code);
  return table;
}

uint8_t Encode(KvFormat format, float scaled) {
  if (format == KvFormat::kUint8) {
    const float rounded = std::clamp(std::nearbyint(scaled), -127.0f, 127.0f);
    return static_cast<uint8_t>(static_cast<int>(rounded) + kUint8Zero);
  }
  return FloatToFp8(FormatOf(format), scaled, Fp8Overflow::kSaturate);
}

// What maps the largest magnitude onto the largest number; 0 where all are zero.
float ScaleOf(const Problem& p, std::span<const Bits16> values, KvFormat format) {
  float largest = 0;
  for (const Bits16 bits : values) largest = std::max(largest, std::fabs(ToFloat(p.dtype, bits)));
  return largest / LargestNumber(format);
}

}  // namespace

float LargestNumber(KvFormat format) {
  return format == KvFormat::kUint8 ? 127.0f : LargestFp8(FormatOf(format));
}

float CodeNumber(KvFormat format, uint8_t code) {
  static const CodeTable tables[] = {MakeTable(KvFormat::kUint8), MakeTable(KvFormat::kE4m3),
                                     MakeTable(KvFormat::kE5m2)};
  return tables[static_cast<int>(format)][code];
}

QuantisedTensor Quantise(const Problem& p, std::span<const Bits16> values, const KvScheme& scheme) {
  QuantisedTensor result;
  result.format = scheme.format;
  result.seq_kv = p.seq_kv;
  result.head_dim = p.head_dim;
  result.keys_per_scale = scheme.scope == ScaleScope::kBlock ? scheme.block_keys : p.seq_kv;
  result.codes.resize(values.size());
  const int64_t heads = int64_t{p.batch} * p.heads_kv;
  const int64_t blocks = (p.seq_kv + result.keys_per_scale - 1) / result.keys_per_scale;
  result.scales.resize(static_cast<size_t>(heads * blocks));
  const float tensor_scale =
      scheme.scope == ScaleScope::kTensor ? ScaleOf(p, values, scheme.format) : 0.0f;
  ParallelFor(heads, [&](int64_t head) {
    const auto first_of = [&](int64_t block) {
      return (head * p.seq_kv + block * result.keys_per_scale) * p.head_dim;
    };
    const auto end_of = [&](int64_t block) {
      return block + 1 < blocks ? first_of(block + 1) : (head + 1) * p.seq_kv * p.head_dim;
    };
    float* scales = &result.scales[static_cast<size_t>(head * blocks)];
    for (int64_t block = 0; block < blocks; ++block) {
      const auto of_block =
          values.subspan(first_of(block), static_cast<size_t>(end_of(block) - first_of(block)));
      scales[block] =
          scheme.scope == ScaleScope::kTensor ? tensor_scale : ScaleOf(p, of_block, scheme.format);
    }
    const float largest = std::max(0.0f, *std::max_element(scales, scales + blocks));
    for (int64_t block = 0; block < blocks; ++block) {
      // Zeros have any scale. The head's own leaves the other blocks' parts of it alone.
      if (scales[block] == 0) scales[block] = largest > 0 ? largest : 1.0f;
      for (int64_t at = first_of(block); at < end_of(block); ++at) {
        result.codes[at] = Encode(scheme.format, ToFloat(p.dtype, values[at]) / scales[block]);
      }
    }
  });
  return result;
}

QuantisedTensor QuantiseQueries(const Problem& problem, std::span<const Bits16> values,
                                KvFormat format) {
  Problem as_keys = problem;
  as_keys.heads_kv = problem.heads_q;
  as_keys.seq_kv = problem.seq_q;
  return Quantise(as_keys, values, {.format = format, .scope = ScaleScope::kHead});
}

float OutputScale(const QuantisedTensor& v) {
  const float largest = *std::max_element(v.scales.begin(), v.scales.end());
  return std::exp2(std::ceil(std::log2(largest)));
}

int LaunchScaleStride(const QuantisedTensor& tensor, ScaleScope scope) {
  if (scope != ScaleScope::kBlock) return 1;
  return 1 + (tensor.seq_kv + tensor.keys_per_scale - 1) / tensor.keys_per_scale;
}

std::vector<float> LaunchScales(const QuantisedTensor& tensor, ScaleScope scope) {
  if (scope != ScaleScope::kBlock) return tensor.scales;
  const int blocks = LaunchScaleStride(tensor, scope) - 1;
  std::vector<float> result;
  for (size_t first = 0; first < tensor.scales.size(); first += blocks) {
    const float* scales = &tensor.scales[first];
    const float largest = *std::max_element(scales, scales + blocks);
    result.push_back(largest);
    for (int b = 0; b < blocks; ++b) result.push_back(scales[b] / largest);
  }
  return result;
}

}  // namespace warpledger::sdpa
