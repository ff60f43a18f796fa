"""The identity of a peer: tokens, routing IDs, kinds of sockets."""

import os
import tempfile

import zmq

from harness import assert_error, check
from wire import DISCONNECT, MSGPACK, READY, Daemon, Peer, Silence, pack


@check
def a_connection_without_a_valid_token_is_refused(world):
    stranger = "oub_" + "0" * 64
    for token in (stranger, "x", "x" * 200):
        with Peer(world.context, world.daemon.hoot, token) as peer:
            assert peer.handshake() == "refused", token
    with Peer(world.context, world.daemon.hoot, None) as peer:
        assert peer.handshake() == "refused", "no token at all"
    with world.peer() as peer:
        assert peer.handshake() == "accepted"
        peer.success("ping")
    assert world.daemon.token_mode() == 0o600, oct(world.daemon.token_mode())


@check
def a_read_token_is_told_what_is_missing(world):
    with world.peer() as admin:
        made = admin.success("token_create", {"name": "reader", "scope": "read"})
        assert made["type"] == "token_created", made
        assert made["token"].startswith("oub_") and len(made["token"]) == 68
        assert made["token_id"].startswith("tok_"), made["token_id"]
        with world.peer(made["token"]) as reader:
            reader.success("ping")
            for tool, fields in (
                ("cas_store", {"data": b"x", "mime_type": "text/plain"}),
                ("job_sleep", {"milliseconds": 1}),
                ("token_list", {}),
            ):
                denied = reader.call(tool, fields)
                assert_error(denied, "permission", "permission_denied")
                assert denied["missing"], denied
        listed = admin.success("token_list")["tokens"]
        names = {token["token_id"]: token["name"] for token in listed}
        assert names[made["token_id"]] == "reader", names
        assert all(made["token"] not in str(token) for token in listed), "a secret in the list"


def assert_no_longer_served(world, peer, token):
    """The open connection answers `unauthenticated` or closes; a new one is refused."""
    try:
        envelope = peer.reply(peer.start({"tool": "ping"}), limit=3)
        assert_error(envelope, "permission", "unauthenticated")
    except Silence:
        pass
    with world.peer(token) as again:
        assert again.handshake() == "refused"


@check
def a_revoked_token_does_not_work_for_one_more_call(world):
    with world.peer() as admin:
        made = admin.success("token_create", {"name": "brief", "scope": "write"})
        with world.peer(made["token"]) as peer:
            peer.success("ping")
            revoked = admin.success("token_revoke", {"token_id": made["token_id"]})
            assert revoked["type"] == "ack", revoked
            assert_no_longer_served(world, peer, made["token"])


@check
def an_expired_token_does_not_work(world):
    with world.peer() as admin:
        fields = {"name": "short", "scope": "read", "expires_in": 2}
        made = admin.success("token_create", fields)
        with world.peer(made["token"]) as peer:
            peer.success("ping")
            # Waits by the daemon's clock: this job ends after the token does.
            admin.wait_for_job(admin.start_job(3000))
            assert_no_longer_served(world, peer, made["token"])


@check
def a_peer_may_call_itself_hoot01(world):
    with world.peer(identity=b"HOOT01") as peer:
        for _ in range(3):
            peer.success("ping")


@check
def a_req_socket_works(world):
    with world.peer(kind=zmq.REQ) as peer:
        for _ in range(3):
            request_id = peer.start({"tool": "ping"})
            assert peer.reply(request_id)["kind"] == "success"


@check
def the_ipc_twin_needs_no_token(world):
    with Peer(world.context, world.daemon.hoot_ipc, None) as peer:
        peer.success("ping")
        assert peer.success("token_list")["tokens"], "local is admin"


@check
def ready_is_acknowledged_and_disconnect_is_survived(world):
    body = pack({"protocol": "HOOT01", "accepts_binary": False, "tools": []})
    with world.peer() as peer:
        ready = peer.reply(peer.send(READY, MSGPACK, body, service=b"interop"))
        assert ready["kind"] == "ack", ready
        peer.send(DISCONNECT)
        peer.success("ping")


@check
def with_curve_the_token_is_the_key_and_never_travels(world):
    server_key, secret_key = zmq.curve_keypair()
    with tempfile.NamedTemporaryFile() as key_file:
        os.write(key_file.fileno(), secret_key)
        setting = {"RINGBACK_HOOT__CURVE_SECRET_KEY_FILE": key_file.name}
        with Daemon(world.daemon.binary, **setting) as daemon:
            stranger = "oub_" + "1" * 64
            with Peer(world.context, daemon.hoot, stranger, server_key=server_key) as peer:
                assert peer.handshake() == "refused"
            with Peer(world.context, daemon.hoot, daemon.token) as peer:
                assert peer.handshake() == "refused", "a token in the clear"
            with Peer(world.context, daemon.hoot, daemon.token, server_key=server_key) as peer:
                assert peer.handshake() == "accepted"
                made = peer.success("token_create", {"name": "reader", "scope": "read"})
                token = made["token"]
                with Peer(world.context, daemon.hoot, token, server_key=server_key) as reader:
                    reader.success("ping")
                    denied = reader.call("job_sleep", {"milliseconds": 1})
                    assert_error(denied, "permission", "permission_denied")
