"""Calls, their forms and their errors."""

import random

from harness import TRACEPARENT, assert_error, check
from wire import EMPTY, HEARTBEAT, JSON, MSGPACK, REQUEST, frame_parts, new_id, pack


@check
def ping_works_as_a_map_as_an_array_and_with_type_for_tool(world):
    with world.peer() as peer:
        for request in ({"tool": "ping"}, ["ping"], {"type": "ping"}):
            envelope = peer.reply(peer.start(request))
            assert envelope["kind"] == "success", envelope
            assert envelope["response"]["type"] == "pong", envelope
            assert envelope["response"]["uptime_ms"] >= 0, envelope
            assert envelope["response"]["version"], envelope
        enveloped = peer.success("ping", wait_ms=1000)
        assert enveloped["type"] == "pong", enveloped


@check
def fields_may_be_positional_and_none_may_be_nil(world):
    with world.peer() as peer:
        for request in (["job_list", None, 1, None], {"tool": "job_list", "status": None}):
            envelope = peer.reply(peer.start(request))
            assert envelope["kind"] == "success", envelope
            assert envelope["response"]["type"] == "job_list", envelope


@check
def list_tools_shows_the_tools_with_their_schemas(world):
    with world.peer() as peer:
        tools, cursor = [], None
        while True:
            page = peer.success("list_tools", {"cursor": cursor} if cursor else {})
            tools += page["tools"]
            cursor = page.get("next_cursor")
            if not cursor:
                break
        by_name = {tool["name"]: tool for tool in tools}
        assert len(by_name) == len(tools) >= 22, sorted(by_name)
        assert by_name["job_sleep"]["timing"] == "async_short", by_name["job_sleep"]
        assert by_name["job_sleep"]["scope"] == "write", by_name["job_sleep"]
        assert "milliseconds" in by_name["job_sleep"]["input_schema"]["properties"]


@check
def a_heartbeat_comes_back_with_its_own_id_also_while_work_is_running(world):
    with world.peer() as peer, world.peer() as other:
        slow = peer.start({"tool": "job_sleep", "milliseconds": 3000}, wait_ms=20000)
        for heart in (peer, other):
            frame = heart.receive(heart.send(HEARTBEAT))
            assert frame.command == HEARTBEAT, frame.command
            assert (frame.content_type, frame.body) == (EMPTY, b""), frame.body
        assert not peer.has_unread(slow), "the heartbeat waited for the call"
        assert peer.reply(slow)["kind"] == "success"


@check
def requests_of_one_peer_run_concurrently(world):
    with world.peer() as peer:
        slow = peer.start({"tool": "job_sleep", "milliseconds": 3000}, wait_ms=20000)
        for _ in range(10):
            peer.success("ping")
        assert not peer.has_unread(slow), "the pings waited for the slow call"
        assert peer.reply(slow)["kind"] == "success"


@check
def errors_are_typed(world):
    with world.peer() as peer:
        unknown = peer.call("no_such_tool", {"arguments": {}})
        assert_error(unknown, "not_found", "not_found")
        assert_error(
            peer.call("job_sleep", {"milliseconds": "soon"}), "validation", "invalid_params"
        )
        assert_error(peer.call("job_sleep"), "validation", "invalid_params")
        assert_error(peer.call("job_status", {"job_id": "job_x"}), "validation", "invalid_params")
        absent = "job_" + "0" * 32
        missing = peer.call("job_status", {"job_id": absent})
        assert_error(missing, "not_found", "not_found")
        assert missing["resource_id"] == absent, missing
        assert missing["retryable"] is False, missing


@check
def random_bodies_get_an_error_with_the_same_id_and_harm_nobody(world):
    source = random.Random(1)
    with world.peer() as peer:
        for n_bytes in (0, 1, 7, 100, 5000):
            request_id = peer.send(REQUEST, MSGPACK, source.randbytes(n_bytes))
            assert_error(peer.reply(request_id), "validation", "invalid_params")
        for body in (b"\xdd\xff\xff\xff\xff", b"\x91" * 5000 + b"\xc0", b"\xc1"):
            request_id = peer.send(REQUEST, MSGPACK, body)
            assert_error(peer.reply(request_id), "validation", "invalid_params")
        peer.success("ping")


@check
def json_is_an_unsupported_content_type(world):
    with world.peer() as peer:
        request_id = peer.send(REQUEST, JSON, b'{"tool": "ping"}')
        assert_error(peer.reply(request_id), "validation", "unsupported_content_type")


@check
def undecodable_frames_with_an_id_get_an_error(world):
    with world.peer() as peer:
        short, unknown = new_id(), new_id()
        peer.send_parts(frame_parts(REQUEST, MSGPACK, short, pack({"tool": "ping"}))[:6])
        assert_error(peer.reply(short), "validation", "invalid_params")
        peer.send_parts(frame_parts(99, EMPTY, unknown))
        assert_error(peer.reply(unknown), "validation", "invalid_params")
        peer.send_parts([b"not", b"HOOT01"])
        peer.send_parts([b""])
        peer.success("ping")


@check
def the_traceparent_is_echoed(world):
    with world.peer() as peer:
        frame = peer.receive(peer.start({"tool": "ping"}, trace=TRACEPARENT))
        assert frame.traceparent == TRACEPARENT.decode(), frame.traceparent
        frame = peer.receive(peer.start({"tool": "no_such_tool"}, trace=TRACEPARENT))
        assert frame.traceparent == TRACEPARENT.decode(), frame.traceparent
        assert peer.receive(peer.start({"tool": "ping"})).traceparent == ""
