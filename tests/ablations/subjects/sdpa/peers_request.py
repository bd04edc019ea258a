# SPDX-License-Identifier: Apache-2.0
"""What the tests of ablations/subjects/sdpa/peers.py ask for: one tiny shape, three blocks."""

import json

from ablations.subjects.sdpa import peers

SHAPE = {"name": "tiny", "batch": 1, "heads_q": 2, "heads_kv": 2, "seq_q": 5, "seq_kv": 7,
         "head_dim": 4, "causal": False}


def request(**changes):
    return peers.parse_request(json.dumps({"shapes": [SHAPE], "blocks": 3, **changes}))
