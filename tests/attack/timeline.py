"""The garden: strangers that want to be it, and to see or change the regions of others."""

from garden import TOOLS, Garden
from wire import MSGPACK, READY, frame_parts, new_id, pack
from world import quick

SECRETS = ("hidden name", "hidden tag")


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
        for tool, fields in (("garden_timeline", {}), ("garden_report", {"events": []})):
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
