# SPDX-License-Identifier: Apache-2.0
"""The peers' program and its modules, and what their tests ask for: one tiny shape, three blocks."""

import importlib
import json

from fixture import ROOT, load

peers = load(ROOT / "ablations/subjects/sdpa/peers/peers.py")
peer_arms, peer_fp8, peer_gpu, peer_libraries, peer_rules = map(
    importlib.import_module, ("peer_arms", "peer_fp8", "peer_gpu", "peer_libraries", "peer_rules"))

SHAPE = {"name": "tiny", "batch": 1, "heads_q": 2, "heads_kv": 2, "seq_q": 5, "seq_kv": 7,
         "head_dim": 4, "causal": False}


def request(**changes):
    return peers.parse_request(json.dumps({"shapes": [SHAPE], "blocks": 3, **changes}))
