// SPDX-License-Identifier: Apache-2.0
// Functions that are compiled for wider vectors too.

#ifndef WARPLEDGER_KERNELS_COMMON_VECTOR_CLONES_H_
#define WARPLEDGER_KERNELS_COMMON_VECTOR_CLONES_H_

// Before a function: it is compiled a second time, for AVX2, and the loader takes what the
// processor has. AVX2 without FMA, so that both round alike and give the same bits. Not with
// AddressSanitizer, which the loader's choice would come before.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define WARPLEDGER_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define WARPLEDGER_VECTOR_CLONES
#endif

#endif  // WARPLEDGER_KERNELS_COMMON_VECTOR_CLONES_H_
