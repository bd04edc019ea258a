// SPDX-License-Identifier: Apache-2.0
#include "micro/harness/call_lines.h"

#include <cuda.h>

#include <cstddef>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/common/cuda_status.h"

namespace warpledger::harness {
namespace {

struct Edge {
  cudaGraphNode_t from;
  bool programmatic;
};

// A function of the driver, looked up so that the program needs no libcuda to start; null
// where the driver has none.
template <typename Function>
Function* FindDriverFunction(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<Function*>(function);
}

absl::StatusOr<std::map<cudaGraphNode_t, Edge>> EdgesInto(cudaGraph_t graph) {
  size_t count = 0;
#if CUDART_VERSION >= 13000
  const auto get = [&](cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data) {
    return cudaGraphGetEdges(graph, from, to, data, &count);
  };
#else
  const auto get = [&](cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data) {
    return cudaGraphGetEdges_v2(graph, from, to, data, &count);
  };
#endif
  RETURN_IF_CUDA_ERROR(get(nullptr, nullptr, nullptr), "counting a graph's edges");
  std::vector<cudaGraphNode_t> from(count);
  std::vector<cudaGraphNode_t> to(count);
  std::vector<cudaGraphEdgeData> data(count);
  std::map<cudaGraphNode_t, Edge> edges;
  if (count == 0) return edges;
  RETURN_IF_CUDA_ERROR(get(from.data(), to.data(), data.data()), "reading a graph's edges");
  for (size_t i = 0; i < count; ++i) {
    const bool programmatic = data[i].type == cudaGraphDependencyTypeProgrammatic;
    if (!edges.emplace(to[i], Edge{from[i], programmatic}).second) {
      return absl::FailedPreconditionError("the graph is no chain: a node follows two others");
    }
  }
  return edges;
}

// The nodes in the order of their edges.
absl::StatusOr<std::vector<cudaGraphNode_t>> Chain(cudaGraph_t graph,
                                                   const std::map<cudaGraphNode_t, Edge>& into) {
  size_t count = 0;
  RETURN_IF_CUDA_ERROR(cudaGraphGetNodes(graph, nullptr, &count), "counting a graph's nodes");
  std::vector<cudaGraphNode_t> nodes(count);
  if (count == 0) return nodes;
  RETURN_IF_CUDA_ERROR(cudaGraphGetNodes(graph, nodes.data(), &count), "reading a graph's nodes");
  std::map<cudaGraphNode_t, cudaGraphNode_t> after;
  for (const auto& [to, edge] : into) after[edge.from] = to;
  std::vector<cudaGraphNode_t> chain;
  for (const cudaGraphNode_t node : nodes) {
    if (into.contains(node)) continue;
    if (!chain.empty()) {
      return absl::FailedPreconditionError("the graph is no chain: two nodes follow none");
    }
    chain.push_back(node);
  }
  while (!chain.empty() && after.contains(chain.back())) chain.push_back(after[chain.back()]);
  if (chain.size() != nodes.size()) {
    return absl::FailedPreconditionError("the graph is no chain: two nodes follow one");
  }
  return chain;
}

std::string Size(unsigned x, unsigned y, unsigned z) { return absl::StrCat(x, "x", y, "x", z); }

absl::StatusOr<std::string> KernelLine(cudaGraphNode_t node, const DescribeParameter& describe) {
  static auto* const get_params =
      FindDriverFunction<decltype(cuGraphKernelNodeGetParams)>("cuGraphKernelNodeGetParams", 12000);
  static auto* const function_name =
      FindDriverFunction<decltype(cuFuncGetName)>("cuFuncGetName", 12030);
  static auto* const kernel_name =
      FindDriverFunction<decltype(cuKernelGetName)>("cuKernelGetName", 12030);
  if (get_params == nullptr || function_name == nullptr || kernel_name == nullptr) {
    return absl::UnimplementedError("the driver is older than 12.3 and names no kernels");
  }
  CUDA_KERNEL_NODE_PARAMS params = {};
  if (get_params(node, &params) != CUDA_SUCCESS) {
    return absl::InternalError("the driver gives no parameters of a kernel node");
  }
  const char* name = nullptr;
  const CUresult named =
      params.func != nullptr ? function_name(&name, params.func) : kernel_name(&name, params.kern);
  if (named != CUDA_SUCCESS || name == nullptr) {
    return absl::InternalError("the driver gives no name of a kernel");
  }
  std::string line = absl::StrCat(
      "kernel ", name, " grid ", Size(params.gridDimX, params.gridDimY, params.gridDimZ), " block ",
      Size(params.blockDimX, params.blockDimY, params.blockDimZ), " smem ", params.sharedMemBytes,
      " B");
  cudaLaunchAttributeValue value = {};
  RETURN_IF_CUDA_ERROR(
      cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &value),
      "reading a kernel node's cluster");
  if (value.clusterDim.x * value.clusterDim.y * value.clusterDim.z > 1) {
    absl::StrAppend(&line, " cluster ",
                    Size(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z));
  }
  value = {};
  RETURN_IF_CUDA_ERROR(
      cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeAccessPolicyWindow, &value),
      "reading a kernel node's access policy window");
  const cudaAccessPolicyWindow& window = value.accessPolicyWindow;
  if (window.num_bytes > 0 && window.hitProp == cudaAccessPropertyPersisting) {
    absl::StrAppendFormat(&line, " window %d B hit %.2f", window.num_bytes, window.hitRatio);
  }
  if (describe != nullptr) {
    if (params.kernelParams == nullptr) {
      return absl::UnimplementedError("the driver gives no parameters of a kernel");
    }
    const std::string said = describe(name, params.kernelParams[0]);
    if (!said.empty()) absl::StrAppend(&line, " ", said);
  }
  return line;
}

absl::StatusOr<std::string> NodeLine(cudaGraphNode_t node, const DescribeParameter& describe) {
  cudaGraphNodeType type;
  RETURN_IF_CUDA_ERROR(cudaGraphNodeGetType(node, &type), "reading a node's type");
  switch (type) {
    case cudaGraphNodeTypeKernel:
      return KernelLine(node, describe);
    case cudaGraphNodeTypeMemset:
      return "memset";
    case cudaGraphNodeTypeMemcpy:
      return "memcpy";
    default:
      return absl::StrCat("node of type ", static_cast<int>(type));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CallLines(cudaGraph_t graph, int calls,
                                                   const DescribeParameter& describe) {
  const absl::StatusOr<std::map<cudaGraphNode_t, Edge>> into = EdgesInto(graph);
  if (!into.ok()) return into.status();
  const absl::StatusOr<std::vector<cudaGraphNode_t>> chain = Chain(graph, *into);
  if (!chain.ok()) return chain.status();
  if (calls < 1 || chain->empty() || chain->size() % calls != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(chain->size(), " nodes are not ", calls, " equal calls"));
  }
  const size_t of_one = chain->size() / calls;
  const size_t first = calls > 1 ? of_one : 0;
  std::vector<std::string> lines;
  for (size_t i = first; i < first + of_one; ++i) {
    absl::StatusOr<std::string> line = NodeLine((*chain)[i], describe);
    if (!line.ok()) return line.status();
    const auto edge = into->find((*chain)[i]);
    if (edge != into->end() && edge->second.programmatic) *line += " after programmatic";
    lines.push_back(*std::move(line));
  }
  return lines;
}

}  // namespace warpledger::harness
