"""A piece that waits for its second half: eight composed bars, and a continuation that a music service is
still making. If it is late, the last bar is repeated until it is there.

    RINGBACK_TOKEN=.. python3 examples/garden.py export.wav

RINGBACK_URL is the daemon's MCP endpoint, http://127.0.0.1:7180/mcp by default. The daemon needs a music
service (`studio.services.musicgen`); `hum.py` is one.
"""

import argparse
import os
import time
import urllib.request

from mcp_client import Ringback

TUNE = """X:1
T:Eight bars
M:4/4
L:1/8
K:Am
A2c2e2c2|d2f2a2f2|e2g2b2g2|a4e4|A2c2e2c2|d2f2a2f2|e2d2c2B2|A8|]
"""
BEATS = 32  # eight bars of four


def compose(ringback, tempo):
    """Eight bars at the start, and what a service is still making after them."""
    ringback.call("garden_set_tempo", bpm=tempo, beat=0, time_signature="4/4")
    tune = ringback.call("abc_to_midi", abc=TUNE)
    ringback.call("garden_create_region", behavior_type="play_content", content_id=tune["artifact_id"],
                  position=0, duration=BEATS, name="eight bars")
    seconds = BEATS * 60 / tempo
    job = ringback.call("musicgen_generate", prompt="a slow answer in A minor", duration=seconds)
    return ringback.call("garden_create_region", behavior_type="latent", content_id=job["job_id"],
                         position=BEATS, duration=BEATS, if_late="vamp", fade_out=4,
                         name="continuation")["region_id"]


def perform(ringback, promise):
    """Plays to the end, and returns whether it had to wait."""
    ringback.call("garden_play")
    waited = False
    while (status := ringback.call("garden_status"))["state"] == "playing":
        if status.get("waiting_for") == promise and not waited:
            print(f"bar {status['bar']} is repeated: the continuation is not there yet")
            waited = True
        time.sleep(0.1)
    regions = {it["region_id"]: it for it in ringback.call("garden_get_regions")["regions"]}
    if regions[promise]["state"] != "ready":
        raise SystemExit(f"the continuation is {regions[promise]['state']}: {regions[promise]['content']}")
    return waited


def export(ringback, path):
    made = ringback.call("garden_export", format="f32")["artifacts"][0]
    api = ringback.url.removesuffix("/mcp")
    request = urllib.request.Request(f"{api}/v1/blobs/{made['content_hash']}",
                                     headers={"authorization": f"Bearer {ringback.token}"})
    with urllib.request.urlopen(request) as content, open(path, "wb") as file:
        while piece := content.read(1 << 20):
            file.write(piece)
    return made["duration_seconds"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("file", help="where the exported piece goes")
    arguments.add_argument("--tempo", type=float, default=120.0, help="quarter notes per minute")
    options = arguments.parse_args()
    url = os.environ.get("RINGBACK_URL", "http://127.0.0.1:7180/mcp")
    ringback = Ringback(url, os.environ["RINGBACK_TOKEN"])
    promise = compose(ringback, options.tempo)
    waited = perform(ringback, promise)
    print("it played, and waited for the continuation" if waited else "it played without a wait")
    seconds = export(ringback, options.file)
    print(f"{seconds:.1f} s in {options.file}")


if __name__ == "__main__":
    main()
