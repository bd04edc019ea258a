// SPDX-License-Identifier: Apache-2.0
#include "ablations/subjects/study/data.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ablations/base/files.h"
#include "ablations/subjects/study/python.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/status_macros.h"

namespace warpledger::ablations {
namespace {

struct DataRequest {
  std::string study;   // its folder
  std::string cache;   // in it
  std::string folder;  // where the data go
  StudyCheck check;
  std::vector<SizedTensor> inputs;
  std::vector<SizedTensor> outputs;
  Parameters parameters;
  std::vector<uint64_t> seeds;
  bool probe = false;

  DESCRIBE_FIELDS(study, cache, folder, check, inputs, outputs, parameters, seeds, probe)
};

struct DataReply {
  std::vector<std::pair<double, double>> limits;
  std::vector<std::string> let_through;

  DESCRIBE_FIELDS(limits, let_through)
};

// A float of a sign, `exponent_bits` and `mantissa_bits`, as IEEE 754 has them.
double FromBits(uint32_t bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const uint32_t top = (1u << exponent_bits) - 1;
  const uint32_t exponent = (bits >> mantissa_bits) & top;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value = 0;
  const bool is_nan =
      exponent == top && (has_infinity ? mantissa != 0 : mantissa == (1u << mantissa_bits) - 1);
  if (is_nan) return std::numeric_limits<double>::quiet_NaN();
  if (exponent == top && has_infinity) {
    value = std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1u << mantissa_bits),
                       static_cast<int>(exponent) - bias - mantissa_bits);
  }
  return (bits >> (exponent_bits + mantissa_bits)) & 1 ? -value : value;
}

template <typename T, typename Convert>
std::vector<double> Converted(const std::byte* data, int64_t elements, Convert convert) {
  std::vector<double> values(static_cast<size_t>(elements));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    values[i] = convert(value);
  }
  return values;
}

template <typename T>
std::vector<double> Plain(const std::byte* data, int64_t elements) {
  return Converted<T>(data, elements, [](T value) { return static_cast<double>(value); });
}

}  // namespace

std::vector<double> Decode(const std::string& dtype, const std::byte* data, int64_t elements) {
  if (dtype == "fp64") return Plain<double>(data, elements);
  if (dtype == "fp32") return Plain<float>(data, elements);
  if (dtype == "int32") return Plain<int32_t>(data, elements);
  if (dtype == "int8") return Plain<int8_t>(data, elements);
  if (dtype == "fp16" || dtype == "bf16") {
    const int exponent_bits = dtype == "fp16" ? 5 : 8;
    return Converted<uint16_t>(data, elements, [=](uint16_t bits) {
      return FromBits(bits, exponent_bits, 15 - exponent_bits, true);
    });
  }
  const int exponent_bits = dtype == "e4m3" ? 4 : 5;
  return Converted<uint8_t>(data, elements, [=](uint8_t bits) {
    return FromBits(bits, exponent_bits, 7 - exponent_bits, exponent_bits == 5);
  });
}

std::vector<SizedTensor> Sized(const std::vector<StudyTensor>& tensors,
                               const Parameters& parameters) {
  std::vector<SizedTensor> sized;
  for (const StudyTensor& tensor : tensors) {
    SizedTensor& out = sized.emplace_back();
    out.name = tensor.name;
    out.dtype = tensor.dtype;
    out.values = !tensor.values.empty()            ? tensor.values
                 : tensor.dtype.starts_with("int") ? "integers"
                                                   : "normal";
    for (const Expression& extent : tensor.shape) {
      out.shape.push_back(EvaluateCount(extent.text, parameters).value_or(0));
    }
    out.elements = ElementsOf(tensor, parameters).value_or(0);
  }
  return sized;
}

absl::StatusOr<StudyData> MakeData(const Study& study, const std::string& folder,
                                   const Parameters& parameters, const std::vector<uint64_t>& seeds,
                                   bool probe) {
  ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Make());
  const DataRequest request = {.study = folder,
                               .cache = absl::StrCat(folder, "/", kStudyCache),
                               .folder = scratch.path(),
                               .check = study.check,
                               .inputs = Sized(study.input, parameters),
                               .outputs = Sized(study.output, parameters),
                               .parameters = parameters,
                               .seeds = seeds,
                               .probe = probe};
  ASSIGN_OR_RETURN(const DataReply reply, AskPython<DataReply>("study_data.py", request));
  StudyData data;
  data.limits = reply.limits;
  data.let_through = reply.let_through;
  ASSIGN_OR_RETURN(const std::string inputs, ReadFile(absl::StrCat(scratch.path(), "/inputs.bin")));
  const auto* at = reinterpret_cast<const std::byte*>(inputs.data());
  const std::byte* const end = at + inputs.size();
  for (size_t set = 0; set < seeds.size(); ++set) {
    auto& tensors = data.inputs.emplace_back();
    for (const SizedTensor& tensor : request.inputs) {
      if (end - at < tensor.bytes()) return absl::InternalError("study_data.py drew too little");
      tensors.emplace_back(at, at + tensor.bytes());
      at += tensor.bytes();
    }
  }
  if (study.check.reference.empty()) return data;
  ASSIGN_OR_RETURN(const std::string right,
                   ReadFile(absl::StrCat(scratch.path(), "/reference.bin")));
  const char* from = right.data();
  for (const SizedTensor& tensor : request.outputs) {
    const size_t bytes = static_cast<size_t>(tensor.elements) * sizeof(double);
    if (right.data() + right.size() < from + bytes) {
      return absl::InternalError("study_data.py wrote too little");
    }
    std::memcpy(data.reference.emplace_back(tensor.elements).data(), from, bytes);
    from += bytes;
  }
  if (data.limits.size() != data.reference.size()) {
    return absl::InternalError("study_data.py replied with too few limits");
  }
  return data;
}

}  // namespace warpledger::ablations
