"""Makes a tune, renders it, bridges it to another and says which result it likes. Then it forgets all it
knew, and finds out again what there is, what it was made from, and what it liked.

    RINGBACK_TOKEN=.. python3 examples/graph.py

RINGBACK_URL is the daemon's MCP endpoint, http://127.0.0.1:7180/mcp by default.
"""

import os
import re

from mcp_client import Ringback

TUNE = """X:1
T:Question
M:4/4
L:1/8
K:Am
A2c2e2c2|d2f2a2f2|e2d2c2B2|A8|]
"""
ANSWER = TUNE.replace("Question", "Answer").replace("A2c2e2c2", "a2g2e2c2")
VIBE = "late night"
SOURCES = """
SELECT made.tool, s.role, s.source_id, origin.tool AS source_tool
FROM artifacts made
JOIN sources s ON s.artifact_id = made.id
JOIN artifacts origin ON origin.id = s.source_id
WHERE made.id = :id ORDER BY s.role
"""


def make(ringback):
    """Two tunes, a sound of the first and a bridge between them; returns nothing on purpose."""
    first = ringback.call("abc_to_midi", abc=TUNE, tags=["example:graph"])
    second = ringback.call("abc_to_midi", abc=ANSWER, tags=["example:graph"])
    ringback.finished("midi_to_wav", input_hash=first["content_hash"], tags=["example:graph"])
    bridge = ringback.finished("orpheus_bridge", section_a_hash=first["content_hash"],
                               section_b_hash=second["content_hash"], max_tokens=120, tags=["example:graph"])
    ringback.call("add_annotation", artifact_id=bridge["artifacts"][0]["artifact_id"],
                  message="this bridge is the one", vibe=VIBE)


def remember(ringback):
    """Finds what was liked, and what it was made from, without knowing any id."""
    told = ringback.call("graph_context", vibe_search=VIBE)
    print(told["context"])
    liked = re.search(r"^- (art_[0-9a-f]{32})", told["context"], re.MULTILINE)
    if not liked:
        raise SystemExit("nothing was liked")
    found = ringback.call("graph_query", query=SOURCES, variables={"id": liked[1]})["results"]
    if not found:
        raise SystemExit("what was liked was made from nothing")
    print(f"liked: {liked[1]}, made with {found[0]['tool']} from")
    for source in found:
        print(f"  {source['role']}: {source['source_id']}, made with {source['source_tool']}")


def main():
    url, token = os.environ.get("RINGBACK_URL", "http://127.0.0.1:7180/mcp"), os.environ["RINGBACK_TOKEN"]
    make(Ringback(url, token))
    # Another connection: nothing of the first one is left.
    remember(Ringback(url, token))


if __name__ == "__main__":
    main()
