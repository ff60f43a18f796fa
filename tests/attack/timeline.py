"""The garden: strangers that want to be it, to hear it, and to see or change the regions of others."""

import contextlib
import http.client

from garden import TOOLS, Garden
from wire import MSGPACK, READY, frame_parts, new_id, pack
from world import quick

SECRETS = ("hidden name", "hidden tag")
SOUND = "/v1/garden/monitor.pcm"
# Bytes of a piece of sound; a daemon keeps 64 of them for a listener that does not read.
PIECE = 64 << 10
# Seconds that a stream may be silent.
LIMIT = 20


def offer(peer, service, tools):
    """The answer to a Ready that names tools."""
    request_id = new_id()
    body = pack({"protocol": "HOOT01", "tools": tools})
    peer.send_parts(frame_parts(READY, MSGPACK, request_id, body, service=service.encode()))
    return peer.reply(request_id)


@quick
def nobody_but_a_full_administrator_is_the_garden(world):
    target = world.target()
    project = target.project()
    strangers = [
        target.new_token("read")[0],
        target.new_token("write")[0],
        target.new_token("admin", projects=[project])[0],
    ]
    for token in strangers:
        for service, tools in TOOLS.items():
            for offered in (tools, ["x"]):
                with target.peer(token) as peer:
                    answer = offer(peer, service, offered)
                    assert answer["kind"] == "error" and answer["code"] == "permission_denied", answer
        ids = {"region_id": "reg_" + "0" * 32, "job_id": "job_" + "0" * 32}
        for tool, fields in (
            ("garden_timeline", {}), ("garden_report", {"events": []}), ("garden_settle", ids),
            ("garden_monitor", {"frames": "", "missed": 0}),
        ):
            assert target.tool(tool, fields, token).status == 403, tool
    with Garden(world.context, target.hoot, target.token) as garden:
        assert target.done("garden_status")["state"] == garden.state
    target.is_well()


@quick
def a_stranger_learns_only_the_place_of_a_region(world):
    target = world.target()
    owner, stranger = target.new_token("write")[0], target.new_token("write")[0]
    with Garden(world.context, target.hoot, target.token), target.peer(owner) as peer:
        stored = peer.success("cas_store", {"data": b"hidden", "mime_type": "audio/wav"})
        region = target.done("garden_create_region", {
            "position": 4, "behavior_type": "play_content", "content_id": stored["hash"],
            "name": SECRETS[0], "tags": [SECRETS[1]],
        }, token=owner)
        hidden = (*SECRETS, stored["hash"])
        seen = target.tool("garden_get_regions", {}, stranger)
        assert seen.json["result"]["regions"][-1]["position"] == 4.0, seen
        events = target.tool("event_poll", {"limit": 1000}, stranger)
        for answer in (seen, events):
            assert not any(it in answer.body.decode() for it in hidden), answer
        for tool, fields in (
            ("garden_move_region", {"region_id": region["region_id"], "new_position": 0}),
            ("garden_delete_region", {"region_id": region["region_id"]}),
        ):
            assert target.tool(tool, fields, stranger).status == 403, tool
        copied = target.tool("garden_create_region", {
            "position": 0, "behavior_type": "play_content", "content_id": stored["hash"],
        }, stranger)
        assert copied.status == 404, copied
        target.done("garden_delete_region", {"region_id": region["region_id"]}, token=owner)
    target.is_well()


@quick
def a_stranger_neither_approves_nor_promises_for_others(world):
    target = world.target()
    owner, stranger = target.new_token("write")[0], target.new_token("write")[0]
    with Garden(world.context, target.hoot, target.token) as garden, target.peer(owner) as peer:
        job = peer.start_job(300_000)
        promise = {"position": 4, "duration": 4, "behavior_type": "latent", "content_id": job}
        taken = target.tool("garden_create_region", promise, stranger)
        assert taken.status == 404, "the job of another token does not exist"
        asked = promise | {"approval": "required", "name": SECRETS[0]}
        region = target.done("garden_create_region", asked, token=owner)["region_id"]
        for tool in ("garden_approve", "garden_reject"):
            assert target.tool(tool, {"region_id": region}, stranger).status == 403, tool
        early = target.tool("garden_approve", {"region_id": region}, owner)
        assert early.status == 409, "there is nothing to approve yet"
        target.done("garden_reject", {"region_id": region, "reason": SECRETS[1]}, token=owner)
        assert garden.regions[region]["state"] == "rejected", garden.regions
        for tool in ("garden_approve", "garden_reject"):
            assert target.tool(tool, {"region_id": region}, owner).status == 409, "a rejection is final"
        seen = target.tool("garden_get_regions", {}, stranger)
        events = target.tool("event_poll", {"limit": 1000}, stranger)
        for answer in (seen, events):
            assert not any(it in answer.body.decode() for it in (*SECRETS, job)), answer
        target.done("garden_delete_region", {"region_id": region}, token=owner)
        peer.success("job_cancel", {"job_id": job})
    target.is_well()


@contextlib.contextmanager
def listening(target, token, path=SOUND):
    """A stream of sound that is open."""
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=LIMIT)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        yield answer
    finally:
        connection.close()


@quick
def nobody_hears_the_garden_without_a_token(world):
    target = world.target()
    reader, reader_id = target.new_token("read")
    writer = target.new_token("write")[0]
    revoked, revoked_id = target.new_token("admin")
    target.done("token_revoke", {"token_id": revoked_id})

    def send(peer, number):
        frames = bytes([number % 256]) * PIECE
        return peer.success("garden_monitor", {"frames": frames, "missed": 0})["listeners"], frames

    with Garden(world.context, target.hoot, target.token), target.peer(target.token) as garden:
        ticket = target.request("POST", "/v1/tickets", token=reader).json["ticket"]
        for path in (SOUND, "/v1/garden/monitor.wav"):
            for token in (None, "x", revoked, ticket):
                refused = target.request("GET", path, token=token)
                assert refused.status == 401, (path, token, refused)
        sound = {"frames": "AAAAAAAAAAA=", "missed": 0}
        for token in (reader, writer):
            assert target.tool("garden_monitor", sound, token).status == 403, token
        with listening(target, None, f"{SOUND}?ticket={ticket}") as heard:
            listeners, frames = send(garden, 1)
            assert listeners == 1 and heard.read(PIECE) == frames, listeners
        assert target.request("GET", f"{SOUND}?ticket={ticket}", token=None).status == 401, "a ticket is good once"
        # One that never reads costs the others nothing.
        with listening(target, reader), listening(target, writer) as heard:
            for number in range(200):
                _, frames = send(garden, number)
                assert heard.read(PIECE) == frames, number
        with listening(target, reader) as heard:
            target.done("token_revoke", {"token_id": reader_id})
            assert heard.read() == b"", "the stream ends with its token"
        assert target.request("GET", SOUND, token=reader).status == 401
    target.is_well()
