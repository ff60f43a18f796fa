"""The content store and artifacts."""

import random
import secrets

from harness import ALL_BYTES, assert_error, check, store
from wire import MSGPACK, RAW_BINARY, READY, REQUEST, pack


@check
def all_byte_values_survive_raw_binary_and_msgpack(world):
    with world.peer() as peer:
        header = pack({"tool": "cas_store", "mime_type": "application/octet-stream"})
        request_id = peer.send(REQUEST, RAW_BINARY, ALL_BYTES, header=header)
        stored = peer.reply(request_id)
        assert stored["kind"] == "success", stored
        stored = stored["response"]
        assert (stored["type"], stored["size"]) == ("cas_stored", len(ALL_BYTES)), stored
        assert len(stored["hash"]) == 64, stored

        header = pack({"tool": "cas_get", "hash": stored["hash"]})
        frame = peer.receive(peer.send(REQUEST, RAW_BINARY, b"", header=header))
        assert frame.content_type == RAW_BINARY, frame.content_type
        assert frame.body == ALL_BYTES, "RawBinary came back changed"
        content = frame.envelope()["response"]
        assert (content["size"], content["hash"]) == (len(ALL_BYTES), stored["hash"]), content

        got = peer.success("cas_get", {"hash": stored["hash"]})
        assert isinstance(got["data"], bytes), type(got["data"])
        assert got["data"] == ALL_BYTES, "MsgPack bin came back changed"
        again = store(peer, ALL_BYTES)
        assert again["hash"] == stored["hash"], again
        assert again["mime_type"] == "application/octet-stream", "that of the first upload"


@check
def a_peer_that_accepts_binary_gets_raw_binary(world):
    body = pack({"protocol": "HOOT01", "accepts_binary": True, "tools": []})
    with world.peer() as peer:
        assert peer.reply(peer.send(READY, MSGPACK, body))["kind"] == "ack"
        hash_ = store(peer, ALL_BYTES)["hash"]
        frame = peer.receive(peer.start({"tool": "cas_get", "hash": hash_}))
        assert (frame.content_type, frame.body) == (RAW_BINARY, ALL_BYTES), frame.content_type


@check
def content_goes_in_pieces_and_comes_in_ranges(world):
    data = random.Random(2).randbytes(300_000)
    upload_id = "interop-" + secrets.token_hex(8)
    with world.peer() as peer:
        for offset in range(0, len(data), 100_000):
            piece = data[offset : offset + 100_000]
            last = offset + len(piece) == len(data)
            stored = store(peer, piece, upload_id=upload_id, offset=offset, last=last)
            assert stored["size"] == offset + len(piece), stored
            assert bool(stored.get("hash")) == last, stored
        assert store(peer, data)["hash"] == stored["hash"], "another hash than the whole"

        def get(**fields):
            return peer.success("cas_get", {"hash": stored["hash"], **fields})

        assert get()["data"] == data
        part = get(offset=99_990, length=50)
        assert part["data"] == data[99_990:100_040], "a range across two pieces"
        assert part["size"] == len(data), part["size"]
        assert get(offset=299_990)["data"] == data[-10:]
        assert get(offset=299_990, length=1_000_000)["data"] == data[-10:]
        assert get(offset=0, length=0)["data"] == b""


@check
def what_is_stored_can_be_inspected_and_what_is_not_is_not_found(world):
    with world.peer() as peer:
        hash_ = store(peer, "zażółć 音楽".encode())["hash"]
        inspected = peer.success("cas_inspect", {"hash": hash_})
        assert inspected["exists"] is True, inspected
        assert inspected["preview"] == "zażółć 音楽", inspected
        absent = "0" * 64
        assert peer.success("cas_inspect", {"hash": absent})["exists"] is False
        assert_error(peer.call("cas_get", {"hash": absent}), "not_found", "not_found")
        stats = peer.success("cas_stats")
        assert stats["blobs"] >= 1 and stats["bytes"] >= 1, stats


@check
def artifacts_have_lineage_and_annotations(world):
    with world.peer() as peer:
        hash_ = store(peer, b"a song")["hash"]
        metadata = {"z": 2**64 - 1, "a": [None, -1, 1.5], "ä": {"nested": True}}
        parent = peer.success("artifact_create", {"content_hash": hash_, "metadata": metadata})
        assert parent["artifact_id"].startswith("art_"), parent
        fields = {
            "content_hash": hash_,
            "tags": ["take", "ä"],
            "creator": "interop",
            "parent_id": parent["artifact_id"],
            "variation_set_id": "vset_" + secrets.token_hex(16),
        }
        made = [peer.success("artifact_create", fields)["artifact_id"] for _ in range(2)]
        assert len({parent["artifact_id"], *made}) == 3, "the same content is several artifacts"
        added = peer.success("add_annotation", {"artifact_id": made[1], "message": "good"})
        info = peer.success("artifact_get", {"id": made[1]})
        assert info["type"] == "artifact_info", info
        assert (info["content_hash"], info["size"]) == (hash_, 6), info
        assert (info["tags"], info["creator"]) == (["take", "ä"], "interop"), info
        assert info["parent_id"] == parent["artifact_id"], info
        assert info["variation_index"] == 1, info
        assert [note["message"] for note in info["annotations"]] == ["good"], info
        assert info["annotations"][0]["id"] == added["annotation_id"], info
        kept = peer.success("artifact_get", {"id": parent["artifact_id"]})["metadata"]
        assert kept == metadata and list(kept) == list(metadata), kept
        orphan = {**fields, "parent_id": "art_" + "0" * 32}
        assert_error(peer.call("artifact_create", orphan), "not_found", "not_found")


@check
def artifact_pages_show_each_artifact_once_newest_first(world):
    with world.peer() as peer:
        tag = "paging-" + secrets.token_hex(4)
        hash_ = store(peer, b"a page")["hash"]
        fields = {"content_hash": hash_, "tags": [tag]}
        made = [peer.success("artifact_create", fields)["artifact_id"] for _ in range(5)]
        seen, cursor, n_pages = [], None, 0
        while n_pages == 0 or cursor:
            filters = {"tag": tag, "limit": 2, **({"cursor": cursor} if cursor else {})}
            page = peer.success("artifact_list", filters)
            assert page["count"] == len(page["artifacts"]) <= 2, page
            seen += [artifact["id"] for artifact in page["artifacts"]]
            cursor = page.get("next_cursor")
            n_pages += 1
            assert n_pages <= 4, "the pages do not end"
        assert seen == made[::-1], (seen, made)
