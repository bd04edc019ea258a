// SPDX-License-Identifier: Apache-2.0
// Runs device code on the CPU, for tests of kernels where there is no GPU.
//
// Every CUDA thread is a fiber; a CTA's fibers, or a cluster's, take turns on one thread
// of the host and change at barriers and warp collectives. Headers that hold PTX have
// counterparts under tests/emulation/shadow, found first by the include path.
//
// What it can show: indices, layouts, masks, arithmetic, barriers that are missing or
// that not all threads reach (a deadlock ends the program), accesses outside of shared
// memory, misaligned ones. Two orders of fibers and two moments at which asynchronous
// copies land bring races to light. What it can't: the memory model, the two proxies,
// registers, time. A product of a warpgroup takes A's registers when it is started, so that writes
// to them while it is in flight go unseen.
//
//   emulation::RunCtas({.ctas = 4, .threads = 128, .smem_bytes = 4096}, [&] { Kernel(p); });

#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <ucontext.h>
#include <vector_functions.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace warpledger::emulation {

// When an asynchronous copy or product writes: as soon as it is issued, or not before its group is
// waited for. Until then the place holds NaN. A copy or product that is late reads as late.
enum class CopiesLand { kEarly, kLate };

struct Launch {
  unsigned ctas = 1;
  unsigned grid_x = 0;   // CTAs in x; 0: all of them
  unsigned grid_y = 0;   // and in y; 0: as many as are left
  unsigned cluster = 1;  // CTAs that run side by side
  int threads = 32;
  size_t smem_bytes = 0;
  CopiesLand copies = CopiesLand::kLate;
  bool reversed = false;  // the last thread goes first
};

struct Barrier {
  int arrived = 0;
  unsigned phase = 0;
  bool any = false;    // of this phase's votes, those so far
  bool voted = false;  // of the phase before
};

struct Copy {
  void* to;
  const void* from;
  bool valid;
};

// Bytes that lie together; from nowhere: zeros.
struct Piece {
  void* to;
  const void* from;
  uint32_t bytes;
};
// What TMA moves into a CTA's shared memory, completed on its mbarrier at `barrier`.
struct BulkCopy {
  uint32_t barrier;
  std::vector<Piece> pieces;
};

// A matrix product of a warpgroup in flight, one thread's part of it.
struct Product {
  float* sums;
  int count;
  std::function<void(float*)> add;  // to the sums as they were
};

// An mbarrier; its place in shared memory is not touched.
struct Mbarrier {
  uint32_t arrivals = 0;  // that complete a phase
  uint32_t pending = 0;
  int64_t bytes = 0;  // announced, less those that have come
  unsigned phase = 0;
};

struct Warp {
  unsigned char exchanged[2][32][64];
  Barrier barrier;
};

struct Cta {
  uint3 index;
  std::vector<unsigned char> memory;
  unsigned char* smem;
  std::map<int, Barrier> barriers;
  std::map<uint32_t, Mbarrier> mbarriers;
  std::vector<BulkCopy> bulk_copies;  // that have not landed
  std::vector<Warp> warps;
  std::vector<struct Fiber*> threads;
};

// Where a fiber or the scheduler goes on: of __builtin_setjmp().
using Place = void* [5];

struct Fiber {
  ucontext_t context;  // of its first turn
  bool begun = false;
  Place place;
  std::unique_ptr<char[]> stack;
  uint3 index;
  Cta* cta;
  Warp* warp;
  int lane;
  int turn = 0;  // of the warp's two buffers
  bool done = false;
  std::vector<Copy> open;
  std::deque<std::vector<Copy>> groups;
  std::vector<Piece> open_stores;  // of TMA, from shared memory
  std::deque<std::vector<Piece>> stores;
  std::vector<Product> open_products;
  std::deque<std::vector<Product>> products;
  std::map<float*, std::vector<float>> sums;  // of products in flight, as they are so far
  int64_t product_groups = 0;                 // that were ever closed
  unsigned cluster_phase = 0;                 // that the thread arrived in
  // At another CTA's barrier; a releasing arrival at the cluster's barrier says that it is there.
  bool arrival_on_its_way = false;
};

struct alignas(16) Registers {
  uint32_t words[4];
};

struct World {
  Launch launch;
  std::function<void()> body;
  std::vector<std::unique_ptr<Cta>> ctas;
  std::vector<std::unique_ptr<Fiber>> fibers;
  int running = 0;  // threads
  Barrier cluster_barrier;
  std::deque<Registers> kept;  // what registers held that are on their way
  Place scheduler;
  int64_t progress = 0;
};

inline World* world = nullptr;
inline Fiber* current = nullptr;
// Of fibers that have ended. To clear a stack takes longer than most threads run.
inline std::vector<std::unique_ptr<char[]>> stacks;

[[noreturn]] inline void Die(const char* why) {
  std::fprintf(stderr, "emulation: %s\n", why);
  std::abort();
}

// Changes of fibers: swapcontext() would ask the kernel for the signal mask twice each time, which
// took half of the tests' time. A function must not jump to a place of its own, so that none of
// these is inlined.
#define WARPLEDGER_NOINLINE __attribute__((noinline))

[[noreturn]] WARPLEDGER_NOINLINE inline void JumpTo(Place& place) { __builtin_longjmp(place, 1); }

WARPLEDGER_NOINLINE inline void Yield() {
  if (__builtin_setjmp(current->place) == 0) JumpTo(world->scheduler);
}

WARPLEDGER_NOINLINE inline void TakeTurn() {
  if (__builtin_setjmp(world->scheduler) != 0) return;
  if (current->begun) JumpTo(current->place);
  current->begun = true;
  setcontext(&current->context);
}

inline void ArriveAndGoOn(Barrier& barrier, int threads) {
  if (++barrier.arrived < threads) return;
  barrier.arrived = 0;
  barrier.voted = barrier.any;
  barrier.any = false;
  ++barrier.phase;
  ++world->progress;
}
inline void Arrive(Barrier& barrier, int threads) {
  const unsigned phase = barrier.phase;
  ArriveAndGoOn(barrier, threads);
  while (barrier.phase == phase) Yield();
}

// What every lane of the warp gives, to each.
template <typename T>
std::array<T, 32> Exchange(const T& mine) {
  static_assert(sizeof(T) <= 64);
  auto& buffer = current->warp->exchanged[current->turn];
  current->turn ^= 1;
  std::memcpy(buffer[current->lane], &mine, sizeof(T));
  Arrive(current->warp->barrier, 32);
  std::array<T, 32> all;
  for (size_t lane = 0; lane < 32; ++lane) std::memcpy(&all[lane], buffer[lane], sizeof(T));
  return all;
}

// Addresses in the shared window start behind 0, which is none.
inline constexpr uint32_t kWindow = 256;

inline unsigned char* Smem(const Cta& cta, uint32_t address, size_t bytes) {
  if (address < kWindow || address - kWindow + bytes > world->launch.smem_bytes) {
    Die("an access outside of shared memory");
  }
  if (address % bytes != 0) Die("a misaligned access to shared memory");
  return cta.smem + (address - kWindow);
}
inline unsigned char* Smem(uint32_t address, size_t bytes) {
  return Smem(*current->cta, address, bytes);
}

inline void Perform(const Copy& copy) {
  if (copy.valid) {
    std::memcpy(copy.to, copy.from, 16);
  } else {
    std::memset(copy.to, 0, 16);
  }
}
inline void CopyAsync(uint32_t to, const void* from, bool valid) {
  if (reinterpret_cast<uintptr_t>(from) % 16 != 0) Die("a misaligned source of a copy");
  const Copy copy = {Smem(to, 16), from, valid};
  if (world->launch.copies == CopiesLand::kEarly) {
    Perform(copy);
  } else {
    std::memset(copy.to, 0xff, 16);
    current->open.push_back(copy);
  }
}
inline void CommitCopies() {
  current->groups.push_back(std::move(current->open));
  current->open.clear();
}
inline void WaitForCopies(size_t pending) {
  while (current->groups.size() > pending) {
    for (const Copy& copy : current->groups.front()) Perform(copy);
    current->groups.pop_front();
  }
}

inline Mbarrier& MbarrierAt(uint32_t address) {
  Smem(address, 8);
  return current->cta->mbarriers[address];
}
inline void CompletePhase(Mbarrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.arrivals;
  ++barrier.phase;
  ++world->progress;
}
//   bytes: that copies are to complete besides
inline void Arrive(Mbarrier& barrier, uint32_t bytes = 0) {
  if (barrier.pending == 0) Die("an arrival too many at an mbarrier");
  --barrier.pending;
  barrier.bytes += bytes;
  CompletePhase(barrier);
}
inline void Perform(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    if (piece.from == nullptr) {
      std::memset(piece.to, 0, piece.bytes);
    } else {
      std::memcpy(piece.to, piece.from, piece.bytes);
    }
  }
}
inline void Perform(Cta& cta, const BulkCopy& copy) {
  Perform(copy.pieces);
  Mbarrier& barrier = cta.mbarriers[copy.barrier];
  for (const Piece& piece : copy.pieces) barrier.bytes -= piece.bytes;
  CompletePhase(barrier);
}
inline void CopyBulk(Cta& cta, BulkCopy copy) {
  if (cta.mbarriers[copy.barrier].arrivals == 0) Die("an mbarrier that nobody initialised");
  for (const Piece& piece : copy.pieces) {
    if (reinterpret_cast<uintptr_t>(piece.from) % 16 != 0) Die("a misaligned source of a copy");
  }
  if (world->launch.copies == CopiesLand::kEarly) return Perform(cta, copy);
  for (const Piece& piece : copy.pieces) std::memset(piece.to, 0xff, piece.bytes);
  cta.bulk_copies.push_back(std::move(copy));
}
// Registers as the source of a copy.
template <std::size_t kWords>
const void* Kept(const uint32_t (&words)[kWords]) {
  Registers copy = {};
  static_assert(sizeof(words) <= sizeof(copy));
  std::memcpy(&copy, words, sizeof(words));
  return &world->kept.emplace_back(copy);
}
inline void CopyBulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  if (to % 16 != 0 || bytes % 16 != 0) Die("a misaligned bulk copy");
  Smem(to + bytes - 16, 16);
  CopyBulk(*current->cta, {barrier, {{Smem(to, 16), from, bytes}}});
}
inline void LandCopiesOf(uint32_t address) {
  auto& copies = current->cta->bulk_copies;
  const auto behind = std::stable_partition(
      copies.begin(), copies.end(), [&](const BulkCopy& copy) { return copy.barrier != address; });
  const std::vector<BulkCopy> due(behind, copies.end());
  copies.erase(behind, copies.end());
  for (const BulkCopy& copy : due) Perform(*current->cta, copy);
}
// Late copies land when a thread waits for their barrier.
inline void WaitForPhase(uint32_t address, uint32_t parity) {
  Mbarrier& barrier = MbarrierAt(address);
  if (barrier.arrivals == 0) Die("an mbarrier that nobody initialised");
  LandCopiesOf(address);
  while (barrier.phase % 2 == parity) {
    Yield();
    LandCopiesOf(address);
  }
}

// --- Stores by TMA: a thread's groups ---
inline void StoreBulk(std::vector<Piece> pieces) {
  if (world->launch.copies == CopiesLand::kEarly) return Perform(pieces);
  auto& open = current->open_stores;
  open.insert(open.end(), pieces.begin(), pieces.end());
}
inline void CommitStores() {
  current->stores.push_back(std::move(current->open_stores));
  current->open_stores.clear();
}
inline void WaitForStores(size_t pending) {
  for (; current->stores.size() > pending; current->stores.pop_front()) {
    Perform(current->stores.front());
  }
}

// --- Products of a warpgroup: four warps, which start and end them together ---
inline constexpr int kWarpgroupThreads = 128;

// `add` adds to `count` sums, which nobody may touch until the group has been waited for.
inline void StartProduct(float* sums, int count, std::function<void(float*)> add) {
  if (world->launch.copies == CopiesLand::kEarly) return add(sums);
  auto& so_far = current->sums[sums];
  if (so_far.empty()) {
    so_far.assign(sums, sums + count);
    std::fill(sums, sums + count, NAN);
  }
  current->open_products.push_back({sums, count, std::move(add)});
}
inline void CommitProducts() {
  current->products.push_back(std::move(current->open_products));
  current->open_products.clear();
  ++current->product_groups;
  ++world->progress;
}
inline void EndOldestProducts(Fiber& thread) {
  std::map<float*, int> ended;
  for (const Product& product : thread.products.front()) {
    product.add(thread.sums[product.sums].data());
    ended[product.sums] = product.count;
  }
  thread.products.pop_front();
  for (const auto& [sums, count] : ended) {
    const auto in_flight = [at = sums](const std::vector<Product>& group) {
      return std::any_of(group.begin(), group.end(),
                         [at](const Product& p) { return p.sums == at; });
    };
    if (in_flight(thread.open_products) ||
        std::any_of(thread.products.begin(), thread.products.end(), in_flight)) {
      continue;
    }
    std::copy_n(thread.sums[sums].data(), count, sums);
    thread.sums.erase(sums);
  }
}
// A group ends for all threads of the warpgroup, once all have started it.
inline void WaitForProducts(int64_t pending) {
  const int64_t groups = current->product_groups - pending;
  const auto first = static_cast<size_t>(current->index.x) / kWarpgroupThreads * kWarpgroupThreads;
  const auto all = [&](const auto& is_so) {
    for (size_t i = 0; i < kWarpgroupThreads; ++i) {
      if (!is_so(*current->cta->threads[first + i])) return false;
    }
    return true;
  };
  while (!all([&](const Fiber& thread) { return thread.product_groups >= groups; })) Yield();
  all([&](Fiber& thread) {
    while (thread.product_groups - static_cast<int64_t>(thread.products.size()) < groups) {
      EndOldestProducts(thread);
    }
    return true;
  });
}

// Of the threads of a cluster that have not ended.
inline void CompleteClusterBarrier() {
  Barrier& barrier = world->cluster_barrier;
  if (barrier.arrived > 0 && barrier.arrived >= world->running) {
    barrier.arrived = 0;
    ++barrier.phase;
    ++world->progress;
  }
}
inline void ArriveAtCluster() {
  current->cluster_phase = world->cluster_barrier.phase;
  ++world->cluster_barrier.arrived;
  CompleteClusterBarrier();
}
inline void WaitForCluster() {
  while (world->cluster_barrier.phase == current->cluster_phase) Yield();
}

inline void Enter() {
  world->body();
  if (current->arrival_on_its_way) {
    Die("a thread ends while its arrival at another CTA may be on its way: that CTA may end first");
  }
  if (!current->open_stores.empty() || !current->stores.empty()) {
    Die("a thread ends while a store by TMA may still read its CTA's shared memory");
  }
  current->done = true;
  ++world->progress;
  --world->running;
  CompleteClusterBarrier();
  Yield();
}

// Of thread `thread` of the CTA.
inline std::unique_ptr<Fiber> MakeFiber(Cta* cta, int thread) {
  constexpr size_t kStackBytes = 128 * 1024;
  auto fiber = std::make_unique<Fiber>();
  fiber->index = make_uint3(static_cast<unsigned>(thread), 0, 0);
  fiber->cta = cta;
  fiber->warp = &cta->warps[static_cast<size_t>(thread / 32)];
  fiber->lane = thread % 32;
  if (stacks.empty()) stacks.emplace_back(new char[kStackBytes]);
  fiber->stack = std::move(stacks.back());
  stacks.pop_back();
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.get();
  fiber->context.uc_stack.ss_size = kStackBytes;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, &Enter, 0);
  return fiber;
}

inline void RunSideBySide(const Launch& launch, unsigned first, const std::function<void()>& body) {
  constexpr size_t kAlignment = 128;
  World here;
  here.launch = launch;
  here.body = body;
  world = &here;
  const unsigned grid_x = launch.grid_x > 0 ? launch.grid_x : launch.ctas;
  const unsigned grid_y = launch.grid_y > 0 ? launch.grid_y : launch.ctas;
  for (unsigned i = first; i < first + launch.cluster; ++i) {
    auto cta = std::make_unique<Cta>();
    cta->index = make_uint3(i % grid_x, i / grid_x % grid_y, i / grid_x / grid_y);
    cta->memory.assign(launch.smem_bytes + kAlignment, 0xff);
    const auto at = reinterpret_cast<uintptr_t>(cta->memory.data());
    cta->smem = cta->memory.data() + ((at + kAlignment - 1) / kAlignment * kAlignment - at);
    cta->warps.resize(static_cast<size_t>(launch.threads / 32));
    for (int thread = 0; thread < launch.threads; ++thread) {
      here.fibers.push_back(MakeFiber(cta.get(), thread));
      cta->threads.push_back(here.fibers.back().get());
    }
    here.ctas.push_back(std::move(cta));
  }
  here.running = static_cast<int>(here.fibers.size());
  if (launch.reversed) std::reverse(here.fibers.begin(), here.fibers.end());
  for (bool left = true; left;) {
    left = false;
    const int64_t before = here.progress;
    for (const std::unique_ptr<Fiber>& fiber : here.fibers) {
      if (fiber->done) continue;
      current = fiber.get();
      TakeTurn();
      left = left || !fiber->done;
    }
    if (left && here.progress == before) Die("a barrier that not all threads reach");
  }
  for (const std::unique_ptr<Cta>& cta : here.ctas) {
    if (!cta->bulk_copies.empty()) Die("a CTA ends while a copy may be on its way to it");
  }
  for (const std::unique_ptr<Fiber>& fiber : here.fibers) stacks.push_back(std::move(fiber->stack));
  world = nullptr;
  current = nullptr;
}

// `body` is what each thread of the grid runs.
inline void RunCtas(const Launch& launch, const std::function<void()>& body) {
  for (unsigned first = 0; first < launch.ctas; first += launch.cluster) {
    RunSideBySide(launch, first, body);
  }
}

}  // namespace warpledger::emulation

// --- What CUDA C++ has of its own, as far as the kernels under test use it ---------

#define threadIdx (::warpledger::emulation::current->index)
#define blockIdx (::warpledger::emulation::current->cta->index)
#define gridDim (::make_uint3(::warpledger::emulation::world->launch.ctas, 1, 1))

using std::max;
using std::min;

inline void __syncthreads() {
  namespace emulation = warpledger::emulation;
  emulation::Arrive(emulation::current->cta->barriers[0], emulation::world->launch.threads);
}
inline void __syncwarp() {
  warpledger::emulation::Arrive(warpledger::emulation::current->warp->barrier, 32);
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return warpledger::emulation::Exchange(value)[warpledger::emulation::current->lane ^ mask];
}
template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
  return warpledger::emulation::Exchange(value)[lane];
}
inline bool __any_sync(unsigned, bool predicate) {
  const std::array<bool, 32> all = warpledger::emulation::Exchange(predicate);
  return std::find(all.begin(), all.end(), true) != all.end();
}
template <typename T>
T __ldg(const T* from) {
  return *from;
}
template <typename T>
T __ldcg(const T* from) {
  return *from;
}
inline int atomicAdd(int* to, int value) {
  const int old = *to;
  *to += value;
  return old;
}
inline float __int_as_float(int bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
// Byte i of the result is that byte of `high` over `low` which nibble i of `selector` names.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const uint64_t bytes = uint64_t{high} << 32 | low;
  unsigned chosen = 0;
  for (unsigned i = 0; i < 4; ++i) {
    chosen |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  }
  return chosen;
}
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __expf(float x) { return std::exp(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline size_t __cvta_generic_to_shared(const void* pointer) {
  namespace emulation = warpledger::emulation;
  return static_cast<size_t>(static_cast<const unsigned char*>(pointer) -
                             emulation::current->cta->smem) +
         emulation::kWindow;
}
inline void* __cvta_shared_to_generic(size_t address) {
  return warpledger::emulation::Smem(static_cast<uint32_t>(address), 1);
}
