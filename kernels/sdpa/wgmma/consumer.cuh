// SPDX-License-Identifier: Apache-2.0
// The warpgroups that compute: 64 query rows each, in the schedule of FlashAttention-3
// (arXiv 2407.08608, algorithm 2). While the softmax of tile n runs, the tensor cores work on P V
// of tile n - 1; and the warpgroups take turns, so that one's softmax runs beside another's
// products.
//
//   S = Q K_last^T;  P = softmax(S)
//   for n from the last tile but one down to 0:
//     start S' = Q K_n^T;  start O += P V_(n+1)
//     wait for S';  P', rescale = softmax(S')
//     wait for O;   O *= rescale;  P = P'
//   O += P V_0;  O /= sum
//
// K/V tiles go from the last to the first, so that masked tiles come first.
//
// In 8 bits P's codes go straight from the scores' registers into those of A, for keys are
// renumbered (fp8_layout.h), and V is transposed by the producer's other warps.

#ifndef WARPLEDGER_KERNELS_SDPA_WGMMA_CONSUMER_CUH_
#define WARPLEDGER_KERNELS_SDPA_WGMMA_CONSUMER_CUH_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/common/cluster.cuh"
#include "kernels/common/matrix.cuh"
#include "kernels/common/mbarrier.cuh"
#include "kernels/common/wgmma.cuh"
#include "kernels/sdpa/shared/exp.cuh"
#include "kernels/sdpa/shared/scores.cuh"
#include "kernels/sdpa/wgmma/epilogue.cuh"
#include "kernels/sdpa/wgmma/fp8_products.cuh"
#include "kernels/sdpa/wgmma/fragment_store.cuh"
#include "kernels/sdpa/wgmma/load/inline_loader.cuh"
#include "kernels/sdpa/wgmma/params.h"
#include "kernels/sdpa/wgmma/pipeline.cuh"
#include "kernels/sdpa/wgmma/scales.cuh"
#include "kernels/sdpa/wgmma/schedule.cuh"
#include "kernels/sdpa/wgmma/shape.h"
#include "kernels/sdpa/wgmma/softmax.cuh"
#include "kernels/sdpa/wgmma/varlen/clear_rows.cuh"

namespace warpledger::sdpa {

template <WgmmaShape kShape>
class WgmmaConsumer {
 public:
  using Barriers = WgmmaBarriers<kShape>;
  using Params = WgmmaParamsOf<kShape>;

  __device__ WgmmaConsumer(const Params& p, uint32_t smem, Barriers barriers, int warpgroup)
      : p_(p),
        smem_(smem),
        barriers_(barriers),
        warpgroup_(warpgroup),
        thread_(threadIdx.x % kWarpgroup),
        epilogue_(p, smem, warpgroup, threadIdx.x % kWarpgroup),
        loader_(p, smem, barriers),
        score_scale_(Exp::Scale(p.softmax_scale)) {}

  __device__ void Run() {
    // The first turn is given away by the last warpgroup.
    if (kTakeTurns && warpgroup_ == kShape.consumers - 1) PassTurn<kShape.turns>();
    uint32_t q_phase = 0;
    TileQueue<kShape> queue(p_, barriers_);
    if constexpr (kShape.inline_loads) {
      if (Loads()) loader_.Start();
    }
    for (int tile; (tile = queue.template Next<false>()) >= 0;) {
      if constexpr (kShape.keep_k) {
        RunHead(HeadWalk<kShape>(p_, queue.Work(tile)), q_phase);
        continue;
      }
      const WgmmaWork<kShape> work = queue.Work(tile);
      if constexpr (kShape.split_kv) {
        if (p_.splits > 1 && !work.HasKeys()) {
          epilogue_.StoreNoKeys(work);
          break;  // a CTA has one block then
        }
      }
      if ((kShape.causal || kShape.varlen) && work.kv_tiles == 0) {
        epilogue_.StoreUnseen(work);
      } else {
        if constexpr (kShape.inline_loads) {
          if (Loads()) loader_.LoadQueries(work, q_phase);
          __syncwarp();
        }
        ptx::MbarrierWait(barriers_.QFull(), q_phase);
        q_phase ^= 1;
        RunTile(work);
      }
      // Both ways join here, lanes and all, or the compiler would take the next tile's ring
      // slots and descriptors for different in each lane.
      __syncwarp();
    }
    epilogue_.Drain();
  }

 private:
  using Exp = typename WgmmaSoftmax<kShape>::Exp;
  static constexpr WgmmaSmem kSmem = MakeSmem(kShape);
  static constexpr int kScores = kShape.tile_n / 2;  // registers per thread
  static constexpr int kOutputs = kShape.head_dim / 2;
  static constexpr bool kTakeTurns = kShape.turns != WgmmaTurns::kNone && kShape.consumers > 1;

  template <int kN>
  using Product = ptx::Wgmma<kN, kShape.fp8    ? ptx::WgmmaInputs::kE4m3
                                 : kShape.bf16 ? ptx::WgmmaInputs::kBf16
                                               : ptx::WgmmaInputs::kFp16>;
  using Fp8 = Fp8Products<kShape>;
  static constexpr int kParts = Fp8::kParts;
  static constexpr int kFresh = Fp8::kPartOutputs;
  static constexpr int kColumns = SwizzleColumns(kShape);
  static constexpr int kRow = RowBytes(kShape);
  static constexpr int kPerProduct = 32 / ElementBytes(kShape);  // along K

  // From one block of 64 keys of P to the next.
  static constexpr int kBlockBytes = kRowsPerConsumer * 128;

  // Where the warpgroup's P lies, if in shared memory.
  __device__ uint32_t Probabilities() const { return smem_ + kSmem.p + warpgroup_ * kSmem.p_bytes; }
  // A tile of V, as products read it.
  __device__ uint32_t Values(int slot) const { return smem_ + kSmem.v + slot * kSmem.v_bytes; }
  // The warpgroup's first row in the tile.
  __device__ int FirstRow() const { return epilogue_.RowBlock() * kRowsPerConsumer; }

  // --- Turns at the tensor cores ---
  __device__ void AwaitTurn() const {
    if constexpr (kTakeTurns) ptx::NamedBarrierSync(kTurnBarrier + warpgroup_, 2 * kWarpgroup);
  }
  // Where they pass at `kAt`.
  template <WgmmaTurns kAt>
  __device__ void PassTurn() const {
    if constexpr (kTakeTurns && kShape.turns == kAt) {
      ptx::NamedBarrierArrive(kTurnBarrier + (warpgroup_ + 1) % kShape.consumers, 2 * kWarpgroup);
    }
  }
  __device__ void Release(uint32_t barrier) const {
    if (thread_ % 32 == 0) ptx::MbarrierArrive(barrier);
  }
  // A K/V tile's slot, to the producers of all CTAs of the cluster. Relaxed: the reads that
  // it speaks of are over, for wgmma.wait_group has returned, and no write is handed on.
  __device__ void ReleaseTile(uint32_t barrier) const {
    if constexpr (kShape.cluster == 1) {
      Release(barrier);
    } else if (thread_ % 32 < kShape.cluster) {
      ptx::MbarrierArriveClusterRelaxed(ptx::MapShared(barrier, thread_ % 32));
    }
  }

  // With keep_k: whether no later tile of queries of this CTA reads tile n of keys.
  __device__ bool IsLastUse(int n) const { return n >= kept_.tiles; }
  __device__ void ReleaseK([[maybe_unused]] int n) const {
    if constexpr (kShape.keep_k) {
      if (!IsLastUse(n)) return;
    }
    ReleaseTile(barriers_.KEmpty(k_.slot));
  }
  __device__ void ReleaseV([[maybe_unused]] int n) const {
    if constexpr (kShape.keep_v) {
      if (!IsLastUse(n)) return;
    }
    if constexpr (kShape.fp8) {  // its own warps fill it
      Release(barriers_.VEmpty(v_.slot));
    } else {
      ReleaseTile(barriers_.VEmpty(v_.slot));
    }
  }

  struct NoTileScales {};

  // Of what is kept of a head, the first tiles, which the next tile of queries reads too.
  struct Kept {
    int tiles;
  };
  struct NothingKept {};

  struct Queries {
    uint32_t a[kShape.head_dim / 4];  // of Q K^T, four to 16 columns
  };
  struct NoQueries {};

  // The state of one tile of queries.
  struct Tile {
    float scores[kScores];
    float out[kOutputs];
    uint32_t probs[kScores * ElementBytes(kShape) / 4];  // unless they pass through shared memory
    WgmmaSoftmax<kShape> softmax;
    // With two levels: P V of the last tile, or a part of it, and what O before it is yet to be
    // multiplied by.
    float fresh[kShape.two_level ? kFresh : 1];
    float carry[2];
    [[no_unique_address]] std::conditional_t<kShape.q_registers, Queries, NoQueries> q;
  };

  // --- Without a producer ---
  __device__ bool Loads() const { return warpgroup_ == 0 && thread_ == 0; }
  // A tile of K and one of V, which this warp has let go since the last call.
  __device__ void RefillK() {
    if constexpr (kShape.inline_loads) {
      if (Loads()) loader_.LoadK(k_.Before());
      __syncwarp();
    }
  }
  __device__ void RefillV() {
    if constexpr (kShape.inline_loads) {
      if (Loads()) loader_.LoadV(v_.Before());
      __syncwarp();
    }
  }

  // --- Products ---
  template <int kKeys>
  __device__ static float (&FirstKeys(Tile& t))[kKeys / 2] {
    return reinterpret_cast<float(&)[kKeys / 2]>(t.scores);
  }
  // From here on Q's place is the next tile's.
  __device__ void LoadQueries(Tile& t) const {
    const uint32_t rows = smem_ + kSmem.q + (FirstRow() + thread_ / 32 * 16) * kSwizzleBytes +
                          FragmentRowByte(thread_ % 32);
#pragma unroll
    for (int piece = 0; piece < kShape.head_dim / 16; ++piece) {
      uint32_t a[4];
      ptx::LdMatrix(a,
                    FragmentPieceByte(rows, piece % 4) + piece / 4 * TileM(kShape) * kSwizzleBytes);
#pragma unroll
      for (int i = 0; i < 4; ++i) t.q.a[4 * piece + i] = a[i];
    }
    Release(barriers_.QEmpty());
  }
  // Of the tile's first kKeys keys.
  template <int kKeys = kShape.tile_n>
  __device__ void StartScores(Tile& t, int slot) const {
    float(&scores)[kKeys / 2] = FirstKeys<kKeys>(t);
    const uint64_t q = ptx::SwizzledDescriptor<kRow>(smem_ + kSmem.q + FirstRow() * kRow);
    const uint64_t k = ptx::SwizzledDescriptor<kRow>(smem_ + kSmem.k + slot * kSmem.kv_bytes);
    ptx::WgmmaFence();
#pragma unroll
    for (int d = 0; d < kShape.head_dim; d += kPerProduct) {
      const int block = d / kColumns;
      const int in_row = d % kColumns * ElementBytes(kShape);
      const uint64_t columns = Advance(k, block * kShape.tile_n * kRow + in_row);
      if constexpr (kShape.q_registers) {
        const uint32_t a[4] = {t.q.a[d / 4], t.q.a[d / 4 + 1], t.q.a[d / 4 + 2], t.q.a[d / 4 + 3]};
        Product<kKeys>::template RS<0>(scores, a, columns, d == 0 ? 0 : 1);
      } else {
        Product<kKeys>::SS(scores, Advance(q, block * TileM(kShape) * kRow + in_row), columns,
                           d == 0 ? 0 : 1);
      }
    }
    ptx::WgmmaCommit();
  }
  // Of the tile's first kKeys keys.
  template <int kKeys = kShape.tile_n>
  __device__ void StartOutput(Tile& t, int slot) const {
    if constexpr (kShape.two_level) {
      Fp8::Start(t.fresh, t.probs, Values(slot));
    } else if constexpr (kShape.fp8) {
      Fp8::Start(t.out, t.probs, Values(slot));
    } else {
      StartWideOutput<kKeys>(t, slot);
    }
  }
  // Of 16-bit P and V.
  template <int kKeys>
  __device__ void StartWideOutput(Tile& t, int slot) const {
    const uint64_t p = ptx::SwizzledDescriptor(Probabilities());
    const uint64_t v =
        ptx::SwizzledDescriptor(smem_ + kSmem.v + slot * kSmem.kv_bytes, kShape.tile_n * 128);
    ptx::WgmmaFence();
#pragma unroll
    for (int key = 0; key < kKeys; key += 16) {
      if constexpr (kShape.p_smem) {
        const uint32_t step = key / kSwizzleColumns * kBlockBytes + key % kSwizzleColumns * 2;
        Product<kShape.head_dim>::template SS<1>(t.out, Advance(p, step), Advance(v, key * 128), 1);
      } else {
        const uint32_t a[4] = {t.probs[key / 4], t.probs[key / 4 + 1], t.probs[key / 4 + 2],
                               t.probs[key / 4 + 3]};
        Product<kShape.head_dim>::RS(t.out, a, Advance(v, key * 128), 1);
      }
    }
    ptx::WgmmaCommit();
  }

  // P V is over: the registers that it wrote.
  __device__ static void PinOutput(Tile& t) {
    if constexpr (kShape.two_level) {
      ptx::PinRegisters(t.fresh);
    } else {
      ptx::PinRegisters(t.out);
    }
  }
  // With two levels: the last tile's P V, or the first part of it, joins O.
  __device__ static void AddFresh(Tile& t) {
    if constexpr (kShape.two_level) Fp8::Add(t.out, t.carry, t.fresh, 0);
  }
  // With P V in parts, those from kFirst on, of which that one is in flight.
  template <int kFirst>
  __device__ void EndParts(Tile& t, int n) {
    // A second part's registers: the scores', which nobody needs any more, by their name where they
    // are as many, or ptxas spills; to name the first of more has serialised products (C7511).
    if constexpr (kScores == kFresh) {
      Fp8::template EndParts<kFirst>(t.out, t.carry, t.fresh, t.scores, t.probs, Values(v_.slot));
    } else {
      float second[kFresh];
      Fp8::template EndParts<kFirst>(t.out, t.carry, t.fresh, second, t.probs, Values(v_.slot));
    }
    ReleaseV(n);
    v_.Advance();
  }
  // O, whose tiles so far stand against an earlier maximum.
  __device__ static void Rescale(Tile& t, const float (&rescale)[2]) {
    if constexpr (kShape.two_level) {
      t.carry[0] = rescale[0];
      t.carry[1] = rescale[1];
    } else {
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) t.out[i] *= rescale[i / 2 % 2];
    }
  }

  // Sets scores of keys that a row does not see to -inf.
  template <int kCount>
  __device__ void Mask(float (&scores)[kCount], const WgmmaWork<kShape>& work, int n) const {
    const int row = work.Row(epilogue_.RowInTile());
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int position = kShape.pack_heads ? work.PackedPosition(p_, row + 8 * r) : row + 8 * r;
      MaskRow(scores, r, work.VisibleKeys(p_, position) - n * kShape.tile_n, thread_ % 4);
    }
  }

  // Makes the probabilities of a tile A of P V. Of the tile before P V must be over; a
  // group of products is the warpgroup's, so each warp's own wait says so for all four.
  template <int kKeys = kShape.tile_n>
  __device__ void PassProbabilities(Tile& t) const {
    const auto pair = [&](int i) {
      return PackPair<kShape.bf16>(t.scores[2 * i], t.scores[2 * i + 1]);
    };
    if constexpr (kShape.fp8) {
      Fp8::Pack(t.scores, t.probs);
    } else if constexpr (kShape.p_smem) {
      StoreFragment<kShape.tile_n>(Probabilities(), kBlockBytes, thread_, pair);
      ptx::FenceProxyAsync();  // to the products' proxy
    } else {
#pragma unroll
      for (int i = 0; i < kKeys / 4; ++i) t.probs[i] = pair(i);
    }
  }
  // Before P V: the other warps' writes.
  __device__ void AwaitProbabilities() const {
    if constexpr (kShape.p_smem) ptx::NamedBarrierSync(kEpilogueBarrier + warpgroup_, kWarpgroup);
  }

  // From the start of a tile's scores, and with overlap of P V of the tile before, of which kBefore
  // keys count, until the scores have come.
  template <int kBefore = kShape.tile_n>
  __device__ void AwaitScores(Tile& t) {
    ptx::MbarrierWait(barriers_.KFull(k_.slot), k_.phase);
    AwaitTurn();
    StartScores(t, k_.slot);
    if constexpr (kShape.overlap) {
      ptx::MbarrierWait(barriers_.VFull(v_.slot), v_.phase);
      StartOutput<kBefore>(t, v_.slot);
    }
    PassTurn<WgmmaTurns::kStarted>();
    ptx::WgmmaWait<kShape.overlap ? 1 : 0>();
    ptx::PinRegisters(t.scores);
    PassTurn<WgmmaTurns::kScored>();
  }

  // One K/V tile after the first. With overlap its scores and softmax run beside
  // P V of the tile before; without, P V of the tile before is over first.
  template <bool kMasked, int kBefore = kShape.tile_n>
  __device__ void Step(Tile& t, const WgmmaWork<kShape>& work, int n) {
    float rescale[2];
    if constexpr (!kShape.overlap) FinishOutput<kBefore>(t, n + 1);
    const auto before = tile_scales_;
    if constexpr (kShape.block_scale) tile_scales_ = ScalesOfTile<kShape>(p_, work, n);
    AwaitScores<kBefore>(t);
    ReleaseK(n);
    k_.Advance();
    if (kMasked) Mask(t.scores, work, n);
    if constexpr (kShape.block_scale) t.softmax.ChangeUnits(__fdividef(before.k, tile_scales_.k));
    static_assert(kShape.late_wait == 0 || kShape.overlap);
    bool rises;
    if constexpr (kShape.late_wait == 2) {
      rises = t.softmax.Update(t.scores, ScoreScale(), rescale, [&] {
        ptx::OrderBehind(t.softmax.sum[0]);
        if constexpr (kParts == 1) {
          EndOutput(t, n + 1);
        } else {
          ptx::WgmmaWait<0>();
          PinOutput(t);
          AddFresh(t);
          Fp8::StartPart(t.fresh, t.probs, Values(v_.slot), 1);
        }
      });
    } else {
      rises = t.softmax.Update(t.scores, ScoreScale(), rescale);
      if constexpr (kShape.late_wait == 1) {
        ptx::OrderBehind(t.softmax.sum[0] + t.softmax.sum[1]);
      }
      if constexpr (kShape.overlap && kParts == 1) EndOutput(t, n + 1);
    }
    if constexpr (kShape.overlap && kParts > 1) {
      // Codes first: they are a fourth of the scores' registers.
      uint32_t codes[Fp8::kCodeRegisters];
      Fp8::Pack(t.scores, codes);
      EndParts<kShape.late_wait == 2 ? 1 : 0>(t, n + 1);
#pragma unroll
      for (int i = 0; i < kScores / 4; ++i) t.probs[i] = codes[i];
    } else {
      PassProbabilities(t);
    }
    if (rises) Rescale(t, rescale);
    if constexpr (kShape.block_scale) {
      // O is in units of the last tile's V, and becomes one of this tile's.
      const float units = __fdividef(before.v, tile_scales_.v);
      t.carry[0] *= units;
      t.carry[1] *= units;
    }
    AwaitProbabilities();
    // Late, so that the other warpgroups have had time to let go of it too.
    RefillK();
    if constexpr (kShape.overlap) RefillV();
  }

  // With kSumRises: as Step, of tiles n down to `last`, of which each row sees all keys. All warps
  // agree on whether a row rose, because its scores are computed again then, and products are the
  // warpgroup's. So K's tile is let go behind the vote. What a risen row asks for stands outside
  // the inner loop: in it, it kept descriptors from uniform registers.
  __device__ void StepsBySum(Tile& t, const WgmmaWork<kShape>& work, int n, int last) {
    static_assert(kShape.overlap && !kShape.fp8);
#pragma unroll 1
    while (n >= last) {
      bool rises = false;
#pragma unroll 1
      do {
        AwaitScores(t);
        float tile_sum[2];
        const bool stays = t.softmax.TakeOldMaxima(t.scores, ScoreScale(), tile_sum);
        // The vote of the warp tells the compiler that lanes agree (TileQueue::Next).
        rises = __any_sync(0xffffffffu,
                           ptx::NamedBarrierAny(kEpilogueBarrier + warpgroup_, kWarpgroup, !stays));
        if (rises) break;
        t.softmax.AddSums(tile_sum);
        EndStepBySum(t, n);
      } while (--n >= last);
      if (!rises) break;
      ptx::WgmmaWait<0>();
      PinOutput(t);
      StartScores(t, k_.slot);
      ptx::WgmmaWait<0>();
      ptx::PinRegisters(t.scores);
      float rescale[2];
      t.softmax.TakeNewMaxima(t.scores, ScoreScale(), rescale);
      EndStepBySum(t, n);
      Rescale(t, rescale);
      --n;
    }
  }
  __device__ void EndStepBySum(Tile& t, int n) {
    ReleaseK(n);
    k_.Advance();
    EndOutput(t, n + 1);
    PassProbabilities(t);
    AwaitProbabilities();
    RefillK();
    RefillV();
  }

  // Behind a sequence's last key the tile of V holds the next sequence's, whose probabilities are
  // 0; but 0 times infinity is not. Each warpgroup clears the rows for itself, the same as the
  // others.
  __device__ void ClearBehindLastKey(const WgmmaWork<kShape>& work, int n) const {
    const int keys = work.Lengths(p_).seq_kv - n * kShape.tile_n;
    if (keys >= kShape.tile_n) return;
    ptx::MbarrierWait(barriers_.VFull(v_.slot), v_.phase);
    ClearRows<kShape>(Values(v_.slot), keys, thread_);
    ptx::FenceProxyAsync();
    ptx::NamedBarrierSync(kEpilogueBarrier + warpgroup_, kWarpgroup);
  }

  // P V of tile n, whose probabilities wait, from start to end.
  template <int kKeys = kShape.tile_n>
  __device__ void FinishOutput(Tile& t, int n) {
    ptx::MbarrierWait(barriers_.VFull(v_.slot), v_.phase);
    StartOutput<kKeys>(t, v_.slot);
    EndOutput(t, n);
    RefillV();
  }
  __device__ void EndOutput(Tile& t, int n) {
    if constexpr (kParts > 1) {
      EndParts<0>(t, n);
    } else {
      ptx::WgmmaWait<0>();
      PinOutput(t);
      ReleaseV(n);
      v_.Advance();
      AddFresh(t);
    }
  }

  __device__ float ScoreScale() const {
    if constexpr (kShape.block_scale) {
      return score_scale_ * tile_scales_.k;
    } else {
      return score_scale_;
    }
  }

  // With keep_k: all tiles of queries of a head, or one.
  __device__ void RunHead(HeadWalk<kShape> walk, uint32_t& q_phase) {
#pragma unroll 1
    for (; !walk.IsDone(); walk.Advance()) {
      if (kShape.causal && walk.work().kv_tiles == 0) {
        epilogue_.StoreUnseen(walk.work());
      } else {
        kept_.tiles = walk.kept();
        ptx::MbarrierWait(barriers_.QFull(), q_phase);
        q_phase ^= 1;
        RunTile(walk.work());
        k_.Rewind(kept_.tiles);
        if constexpr (kShape.keep_v) v_.Rewind(kept_.tiles);
      }
      __syncwarp();
    }
  }

  static constexpr bool kHalfTiles = kShape.own_tiles && kShape.tile_n % 128 == 0 && !kShape.fp8;
  // So many keys some row of the warpgroup sees, the first ones. In packed sequences, many of which
  // end in the first half of a block, none where its rows lie behind the last one.
  __device__ int OwnKeys(const WgmmaWork<kShape>& work) const {
    const int first_row = work.first_row + FirstRow();
    if (kShape.varlen && first_row >= work.Lengths(p_).seq_q) return 0;
    return work.VisibleKeys(p_, first_row + kRowsPerConsumer - 1);
  }

  // consumer_keys.cuh
  __device__ int FirstTile(const WgmmaWork<kShape>& work);
  template <int kKeys = kShape.tile_n>
  __device__ void Begin(Tile& t, const WgmmaWork<kShape>& work, int first, float (&rescale)[2]);
  __device__ void RunKeys(Tile& t, const WgmmaWork<kShape>& work, int first);

  __device__ void RunTile(const WgmmaWork<kShape>& work) {
    Tile t;
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) t.out[i] = 0.0f;
    WgmmaScales scales = ScalesOf<kShape>(p_, work);
    if constexpr (kShape.fp8) score_scale_ = Exp::Scale(scales.score);
    if constexpr (kShape.q_registers) LoadQueries(t);
    RunKeys(t, work, FirstTile(work));
    t.softmax.Finish();
    if constexpr (kShape.block_scale) {
      scales.score *= tile_scales_.k;
      scales.out *= tile_scales_.v;
    }
    if constexpr (kShape.varlen) {
      // Read again: eight registers that hold it through the loop are more than three consumers
      // have.
      epilogue_.Store(PackedWork<kShape>::Read(work.slot), t.out, t.softmax, scales);
    } else {
      epilogue_.Store(work, t.out, t.softmax, scales);
    }
    if constexpr (StoresThroughQ(kShape)) Release(barriers_.QEmpty());
    if constexpr (kShape.own_tiles) epilogue_.SwapRows();
  }

  template <int kKeys = kShape.tile_n>
  __device__ void End(Tile& t, int last) {
    // The last product that reads Q is done.
    if constexpr (!StoresThroughQ(kShape) && !kShape.q_registers) Release(barriers_.QEmpty());
    FinishOutput<kKeys>(t, last);
  }

  const Params& p_;
  const uint32_t smem_;  // base of the tiles
  const Barriers barriers_;
  const int warpgroup_;
  const int thread_;
  WgmmaEpilogue<kShape> epilogue_;
  std::conditional_t<kShape.inline_loads, WgmmaInlineLoader<kShape>, WgmmaNoLoader> loader_;
  float score_scale_;  // Exp::Scale of what multiplies scores
  // With a scale per tile of keys: of the tile whose scores came last, in parts of the head's.
  // Else nothing at all: a member that nobody reads has changed ptxas's choice of registers.
  [[no_unique_address]] std::conditional_t<kShape.block_scale, WgmmaTileScales, NoTileScales>
      tile_scales_;
  [[no_unique_address]] std::conditional_t<kShape.keep_k, Kept, NothingKept> kept_;
  RingCursor<KStages(kShape)> k_;
  RingCursor<kShape.stages> v_;
};

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_WGMMA_CONSUMER_CUH_
