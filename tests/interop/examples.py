"""The programs of `examples/`, as a reader would run them."""

import os
import subprocess
import sys
from pathlib import Path

from harness import check
from wire import STOP_LIMIT, Daemon, Subscriber

EXAMPLES = Path(__file__).parents[2] / "examples"
# Eight bars take 6 s at this tempo, and the service takes longer.
TEMPO, THINK = 320, 8
RATE = 48_000
# A frame of two 32-bit floats, and the header of a WAV file of them.
FRAME_BYTES, HEADER_BYTES = 8, 200


def frames_of(path):
    """The frames of a WAV file of floats, up to its header."""
    return path.stat().st_size // FRAME_BYTES


def played(context, daemon, out):
    """Runs the example; returns what it printed and the causes of the transport events."""
    variables = {"RINGBACK_URL": f"{daemon.http}/mcp", "RINGBACK_TOKEN": daemon.token}
    with Subscriber(context, daemon.iopub, daemon.token, ["garden.transport", "heads"]) as events:
        events.heads()
        command = [sys.executable, str(EXAMPLES / "garden.py"), str(out), "--tempo", str(TEMPO)]
        ran = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=90)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        seen = events.collect_until(lambda topic, it: it.get("event", {}).get("cause") == "end")
    return ran.stdout, [it["event"]["cause"] for topic, it in seen if topic == "garden.transport"]


@check
def the_piece_of_the_example_waits_for_its_second_half(world):
    service = subprocess.Popen(
        [sys.executable, str(EXAMPLES / "hum.py"), "--port", "0", "--think", str(THINK)], stdout=subprocess.PIPE
    )
    try:
        url = service.stdout.readline().decode().strip()
        recording = world.daemon.home / "played.wav"
        settings = {"RINGBACK_STUDIO__SERVICES__MUSICGEN": url, "RINGBACK_GARDEN__DEVICE": f"file:{recording}"}
        with Daemon(world.daemon.binary, **settings) as daemon:
            out = daemon.home / "export.wav"
            text, causes = played(world.context, daemon, out)
            assert "bar 8 is repeated" in text and "waited for the continuation" in text, text
            assert causes[-3:] == ["command", "vamp", "end"], causes
            assert daemon.terminate() == 0, daemon.log_text()
            bar = 4 * 60 * RATE // TEMPO
            exported, recorded = frames_of(out), frames_of(recording)
            assert exported >= 16 * bar, "both halves"
            # The recording has whole repeated bars more, and up to a buffer of silence at its end.
            n_repeated = round((recorded - exported) / bar)
            assert n_repeated >= 1, (recorded, exported)
            assert abs(recorded - exported - n_repeated * bar) < HEADER_BYTES + 1024, (recorded, exported, bar)
    finally:
        service.kill()
        service.wait(STOP_LIMIT)
        service.stdout.close()


@check
def what_the_example_made_is_found_again(world):
    """By an agent that knows nothing: what it liked, and both sections that it was made from."""
    variables = {"RINGBACK_URL": f"{world.daemon.http}/mcp", "RINGBACK_TOKEN": world.daemon.token}
    command = [sys.executable, str(EXAMPLES / "graph.py")]
    ran = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=90)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    text = ran.stdout
    assert "this bridge is the one" in text and "made with orpheus_bridge from" in text, text
    for role in ("section_a", "section_b"):
        assert f"{role}: art_" in text and text.count("made with abc_to_midi") == 2, text
