// SPDX-License-Identifier: Apache-2.0
#include "kernels/sdpa/launch/cublaslt.h"

#include "absl/strings/str_cat.h"

#ifdef WARPLEDGER_HAS_CUBLASLT_HEADER

#include <cublasLt.h>
#include <dlfcn.h>

#include <map>
#include <string>
#include <tuple>

#include "kernels/common/cuda_status.h"

namespace warpledger::sdpa {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what NVIDIA recommends for Hopper

absl::Status LtStatus(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(doing, ": cuBLASLt's status ", static_cast<int>(status)));
}

#define WARPLEDGER_RETURN_IF_LT_ERROR(expression, doing) \
  RETURN_IF_ERROR(LtStatus((expression), (doing)))

// A product of one size. Descriptors live as long as the process.
struct Product {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t w = nullptr;
  cublasLtMatrixLayout_t x = nullptr;
  cublasLtMatrixLayout_t out = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
  size_t workspace_bytes = 0;
};

}  // namespace

struct CublasLt::Library {
  // The functions by their own names.
  decltype(&::cublasLtCreate) Create;
  decltype(&::cublasLtMatmul) Matmul;
  decltype(&::cublasLtMatmulDescCreate) MatmulDescCreate;
  decltype(&::cublasLtMatmulDescSetAttribute) MatmulDescSetAttribute;
  decltype(&::cublasLtMatrixLayoutCreate) MatrixLayoutCreate;
  decltype(&::cublasLtMatmulPreferenceCreate) MatmulPreferenceCreate;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) MatmulPreferenceSetAttribute;
  decltype(&::cublasLtMatmulPreferenceDestroy) MatmulPreferenceDestroy;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) MatmulAlgoGetHeuristic;

  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
  std::map<std::tuple<int, int, int>, Product> products;  // rows, columns, embed_dim

  // qkv (rows, columns) = x (rows, E) W^T, all in rows; to the library, whose matrices
  // are in columns, (columns, rows) = W'(E, columns)^T x'(E, rows).
  absl::Status Choose(int rows, int columns, int embed_dim, Product* product) {
    WARPLEDGER_RETURN_IF_LT_ERROR(
        MatmulDescCreate(&product->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "describing a product");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    WARPLEDGER_RETURN_IF_LT_ERROR(
        MatmulDescSetAttribute(product->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                               sizeof(transposed)),
        "describing a product");
    const auto e = static_cast<uint64_t>(embed_dim);
    const auto m = static_cast<uint64_t>(columns);
    const auto n = static_cast<uint64_t>(rows);
    WARPLEDGER_RETURN_IF_LT_ERROR(MatrixLayoutCreate(&product->w, CUDA_R_16F, e, m, embed_dim),
                                  "describing W");
    WARPLEDGER_RETURN_IF_LT_ERROR(MatrixLayoutCreate(&product->x, CUDA_R_16F, e, n, embed_dim),
                                  "describing x");
    WARPLEDGER_RETURN_IF_LT_ERROR(MatrixLayoutCreate(&product->out, CUDA_R_16F, m, n, columns),
                                  "describing Q, K and V");
    cublasLtMatmulPreference_t preference = nullptr;
    WARPLEDGER_RETURN_IF_LT_ERROR(MatmulPreferenceCreate(&preference), "asking for an algorithm");
    const cublasStatus_t set =
        MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                     &kWorkspaceBytes, sizeof(kWorkspaceBytes));
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    const cublasStatus_t asked =
        MatmulAlgoGetHeuristic(handle, product->operation, product->w, product->x, product->out,
                               product->out, preference, 1, &best, &found);
    MatmulPreferenceDestroy(preference);
    WARPLEDGER_RETURN_IF_LT_ERROR(set, "asking for an algorithm");
    WARPLEDGER_RETURN_IF_LT_ERROR(asked, "asking for an algorithm");
    if (found == 0) return absl::InternalError("cuBLASLt has no algorithm for the projection");
    product->algorithm = best.algo;
    product->workspace_bytes = best.workspaceSize;
    return absl::OkStatus();
  }
};

absl::StatusOr<const CublasLt*> CublasLt::Get() {
  static const absl::StatusOr<const CublasLt*> loaded = []() -> absl::StatusOr<const CublasLt*> {
    const std::string name = absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR);
    void* const object = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("no ", name, " (", dlerror(),
                       "): arms that project by cuBLASLt can't run. Install the "
                       "CUDA toolkit's cuBLAS, or put its folder into LD_LIBRARY_PATH."));
    }
    auto* library = new Library;
    std::string missing;
    const auto find = [&](const char* symbol, auto* function) {
      *function =
          reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(object, symbol));
      if (*function == nullptr) missing = symbol;
    };
    find("cublasLtCreate", &library->Create);
    find("cublasLtMatmul", &library->Matmul);
    find("cublasLtMatmulDescCreate", &library->MatmulDescCreate);
    find("cublasLtMatmulDescSetAttribute", &library->MatmulDescSetAttribute);
    find("cublasLtMatrixLayoutCreate", &library->MatrixLayoutCreate);
    find("cublasLtMatmulPreferenceCreate", &library->MatmulPreferenceCreate);
    find("cublasLtMatmulPreferenceSetAttribute", &library->MatmulPreferenceSetAttribute);
    find("cublasLtMatmulPreferenceDestroy", &library->MatmulPreferenceDestroy);
    find("cublasLtMatmulAlgoGetHeuristic", &library->MatmulAlgoGetHeuristic);
    if (!missing.empty()) return absl::NotFoundError(absl::StrCat(name, " has no ", missing));
    WARPLEDGER_RETURN_IF_LT_ERROR(library->Create(&library->handle), "starting cuBLASLt");
    RETURN_IF_CUDA_ERROR(cudaMalloc(&library->workspace, kWorkspaceBytes),
                         "allocating cuBLASLt's workspace");
    return new CublasLt(library);
  }();
  return loaded;
}

absl::Status CublasLt::Project(const ProjectionParams& p, int rows, cudaStream_t stream) const {
  const auto [at, is_new] =
      library_->products.try_emplace(std::tuple(rows, p.columns, p.embed_dim));
  Product& product = at->second;
  if (is_new) {
    const absl::Status chosen = library_->Choose(rows, p.columns, p.embed_dim, &product);
    if (!chosen.ok()) {
      library_->products.erase(at);
      return chosen;
    }
  }
  const float one = 1.0f;
  const float zero = 0.0f;
  return LtStatus(
      library_->Matmul(library_->handle, product.operation, &one, p.w, product.w, p.x, product.x,
                       &zero, p.qkv, product.out, p.qkv, product.out, &product.algorithm,
                       library_->workspace, product.workspace_bytes, stream),
      "projecting by cuBLASLt");
}

}  // namespace warpledger::sdpa

#else

namespace warpledger::sdpa {

struct CublasLt::Library {};

absl::StatusOr<const CublasLt*> CublasLt::Get() {
  return absl::UnimplementedError(
      "this build had no cublasLt.h: arms that project by cuBLASLt can't run. Install the CUDA "
      "toolkit's cuBLAS and configure again.");
}

absl::Status CublasLt::Project(const ProjectionParams&, int, cudaStream_t) const {
  return Get().status();
}

}  // namespace warpledger::sdpa

#endif
