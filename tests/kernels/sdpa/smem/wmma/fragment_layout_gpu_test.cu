// SPDX-License-Identifier: Apache-2.0
// The WMMA API says nothing of fragment layouts: matrices of indices are loaded and
// stored through it, and each lane says what it holds. The reductions that build on
// the table run here alone before they run in a kernel.

#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sdpa/smem/wmma/fragment_layout.h"
#include "kernels/sdpa/smem/wmma/row_reduction.cuh"

namespace warpledger::sdpa::smem {
namespace {

namespace wmma = nvcuda::wmma;

constexpr int kEdge = 16;
constexpr int kLanes = 32;
using Accumulator = wmma::fragment<wmma::accumulator, kEdge, kEdge, kEdge, float>;
using MatrixA = wmma::fragment<wmma::matrix_a, kEdge, kEdge, kEdge, half, wmma::row_major>;

struct Probe {
  float accumulator[kLanes][kAccumulatorElements];
  float matrix_a[kLanes][kMatrixAElements];
  float stored[kEdge * kEdge];   // through store_matrix_sync, from elements set by the table
  float product[kEdge * kEdge];  // P I with P put into A by the table
  float row_max[kEdge];
  float row_sum[kEdge];
  float row_sum_of_a[kEdge];
};

__global__ void ProbeLayouts(const float* indices, const half* half_indices, const half* identity,
                             const float* values, const half* half_values, Probe* probe) {
  const int lane = threadIdx.x;
  __shared__ __align__(32) float tile[kEdge * kEdge];
  Accumulator accumulator;
  wmma::load_matrix_sync(accumulator, indices, kEdge, wmma::mem_row_major);
  for (int i = 0; i < kAccumulatorElements; ++i) probe->accumulator[lane][i] = accumulator.x[i];
  MatrixA a;
  wmma::load_matrix_sync(a, half_indices, kEdge);
  for (int i = 0; i < kMatrixAElements; ++i) probe->matrix_a[lane][i] = __half2float(a.x[i]);

  for (int i = 0; i < kAccumulatorElements; ++i) {
    const FragmentPlace place = AccumulatorPlace(lane, i);
    accumulator.x[i] = static_cast<float>(place.row * kEdge + place.col);
  }
  wmma::store_matrix_sync(tile, accumulator, kEdge, wmma::mem_row_major);
  __syncwarp();
  for (int i = lane; i < kEdge * kEdge; i += kLanes) probe->stored[i] = tile[i];
  __syncwarp();

  for (int i = 0; i < kMatrixAElements; ++i) {
    a.x[i] = __float2half_rn(accumulator.x[AccumulatorElementOfMatrixA(i)]);
  }
  wmma::fragment<wmma::matrix_b, kEdge, kEdge, kEdge, half, wmma::row_major> b;
  wmma::load_matrix_sync(b, identity, kEdge);
  Accumulator product;
  wmma::fill_fragment(product, 0.0f);
  wmma::mma_sync(product, a, b, product);
  wmma::store_matrix_sync(tile, product, kEdge, wmma::mem_row_major);
  __syncwarp();
  for (int i = lane; i < kEdge * kEdge; i += kLanes) probe->product[i] = tile[i];

  wmma::load_matrix_sync(accumulator, values, kEdge, wmma::mem_row_major);
  wmma::load_matrix_sync(a, half_values, kEdge);
  float max[kRowsOfLane] = {-INFINITY, -INFINITY};
  float sum[kRowsOfLane] = {};
  float sum_of_a[kRowsOfLane] = {};
  for (int i = 0; i < kAccumulatorElements; ++i) {
    const int r = AccumulatorRowOfLane(i);
    max[r] = fmaxf(max[r], accumulator.x[i]);
    sum[r] += accumulator.x[i];
  }
  AddRows(sum_of_a, a);
  for (int r = 0; r < kRowsOfLane; ++r) {
    const float all_max = QuadMax(max[r]);
    const float all_sum = QuadSum(sum[r]);
    const float all_sum_of_a = QuadSum(sum_of_a[r]);
    if (lane % kLanesOfRow != 0) continue;
    const int row = FirstRowOfLane(lane) + 8 * r;
    probe->row_max[row] = all_max;
    probe->row_sum[row] = all_sum;
    probe->row_sum_of_a[row] = all_sum_of_a;
  }
}

// A copy on the GPU, which lives until the process ends.
template <typename T>
T* OnDevice(const std::vector<T>& values) {
  void* memory = nullptr;
  const size_t bytes = values.size() * sizeof(T);
  EXPECT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(memory, values.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  return static_cast<T*>(memory);
}

class FragmentLayout : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    constexpr int kElements = kEdge * kEdge;
    std::vector<float> indices(kElements);
    std::vector<half> half_indices(kElements);
    std::vector<half> half_values(kElements);
    std::vector<half> identity(kElements);
    values_.resize(kElements);
    for (int i = 0; i < kElements; ++i) {
      indices[i] = static_cast<float>(i);
      half_indices[i] = __float2half_rn(indices[i]);
      // No two alike, none its row's extreme by its place; exact in fp16, and so are sums.
      values_[i] = static_cast<float>((i * 37 + 11) % 257 - 128) / 4;
      half_values[i] = __float2half_rn(values_[i]);
      identity[i] = __float2half_rn(i / kEdge == i % kEdge ? 1.0f : 0.0f);
    }
    probe_ = std::vector<Probe>(1);
    Probe* probe = OnDevice(probe_);
    ProbeLayouts<<<1, kLanes>>>(OnDevice(indices), OnDevice(half_indices), OnDevice(identity),
                                OnDevice(values_), OnDevice(half_values), probe);
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(probe_.data(), probe, sizeof(Probe), cudaMemcpyDeviceToHost), cudaSuccess);
  }

  static std::vector<Probe> probe_;  // one
  static std::vector<float> values_;
};
std::vector<Probe> FragmentLayout::probe_;
std::vector<float> FragmentLayout::values_;

TEST_F(FragmentLayout, OfTheAccumulatorIsAsWrittenDown) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kAccumulatorElements; ++i) {
      const FragmentPlace place = AccumulatorPlace(lane, i);
      EXPECT_EQ(probe_[0].accumulator[lane][i], place.row * kEdge + place.col)
          << "lane " << lane << ", element " << i;
    }
  }
}

TEST_F(FragmentLayout, OfMatrixAIsAsWrittenDown) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kMatrixAElements; ++i) {
      const FragmentPlace place = MatrixAPlace(lane, i);
      EXPECT_EQ(probe_[0].matrix_a[lane][i], place.row * kEdge + place.col)
          << "lane " << lane << ", element " << i;
    }
  }
}

TEST_F(FragmentLayout, StoresWhatTheTablePutIntoTheAccumulator) {
  for (int i = 0; i < kEdge * kEdge; ++i) EXPECT_EQ(probe_[0].stored[i], i);
}

TEST_F(FragmentLayout, MultipliesAnAccumulatorThatWasTurnedIntoMatrixA) {
  for (int i = 0; i < kEdge * kEdge; ++i) EXPECT_EQ(probe_[0].product[i], i);
}

TEST_F(FragmentLayout, ReducesEachRowToItsMaximumAndItsSum) {
  for (int row = 0; row < kEdge; ++row) {
    const float* first = values_.data() + row * kEdge;
    float sum = 0;
    for (int col = 0; col < kEdge; ++col) sum += first[col];
    EXPECT_EQ(probe_[0].row_max[row], *std::max_element(first, first + kEdge)) << row;
    EXPECT_EQ(probe_[0].row_sum[row], sum) << row;
    EXPECT_EQ(probe_[0].row_sum_of_a[row], sum) << row;
  }
}

// What the reduction gives over one half of a row, as over a warp's own 16 of 32
// keys, is not the row's: the table above must be joined by an exchange.
TEST_F(FragmentLayout, OfOneBlockKnowsNothingOfTheNext) {
  int differ = 0;
  for (int row = 0; row < kEdge; ++row) {
    const float* first = values_.data() + row * kEdge;
    differ += *std::max_element(first, first + kEdge / 2) != probe_[0].row_max[row] ? 1 : 0;
  }
  EXPECT_GT(differ, 0);
}

}  // namespace
}  // namespace warpledger::sdpa::smem
