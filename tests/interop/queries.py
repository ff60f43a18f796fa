"""Queries: Python's own SQLite, with views written from the documentation, gives the answers of an administrator."""

import json
import re
import shutil
import sqlite3
import tempfile
from pathlib import Path

import msgpack

from harness import check, store

PAGE = Path(__file__).parents[2] / "docs" / "graph-query.md"

# From the page alone, in the words of the tables; nothing of the daemon's own SQL is used.
VIEWS = """
CREATE TEMP VIEW artifacts AS SELECT 'art_' || lower(hex(id)) AS id, lower(hex(content_hash)) AS content_hash,
    mime_type, size, creator, tool, text_id('job_', job) AS job_id, text_id('gogol_', session) AS session_id,
    text_id('proj_', project) AS project_id, text_id('art_', parent) AS parent_id,
    text_id('vset_', variation_set) AS variation_set_id, variation_index, as_json(metadata) AS metadata, created_at
    FROM main.artifact;
CREATE TEMP VIEW artifact_tags AS SELECT text_id('art_', a.id) AS artifact_id, value AS tag, a.created_at
    FROM main.artifact a, json_each(as_json(a.tags));
CREATE TEMP VIEW sources AS SELECT text_id('art_', artifact) AS artifact_id, text_id('art_', source) AS source_id,
    lower(hex(source_hash)) AS source_hash, role FROM main.artifact_source;
CREATE TEMP VIEW annotations AS SELECT text_id('ann_', id) AS id, text_id('art_', artifact) AS artifact_id, message,
    source, vibe, created_at FROM main.annotation;
CREATE TEMP VIEW jobs AS SELECT text_id('job_', id) AS id, tool,
    CASE state WHEN 0 THEN 'pending' WHEN 1 THEN 'running' WHEN 2 THEN 'complete' WHEN 3 THEN 'failed'
        ELSE 'cancelled' END AS state, started_at, completed_at, created_at FROM main.job;
CREATE TEMP VIEW identities AS SELECT id, name, created_at FROM main.identity;
CREATE TEMP VIEW hints AS SELECT i.id AS identity_id, h.kind, h.value, h.confidence, h.created_at
    FROM main.identity_hint h JOIN main.identity i ON i.n = h.identity;
"""


def as_json(packed):
    return None if packed is None else json.dumps(msgpack.unpackb(packed), ensure_ascii=False, separators=(",", ":"))


def text_id(prefix, value):
    return None if value is None else prefix + value.hex()


def examples():
    """The examples of the page and the names of their variables."""
    for sql in re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.S):
        yield sql, dict(re.findall(r"^-- :(\w+) = (.*)$", sql, re.M))


def copy_of(data):
    """A connection to a copy of the daemon's database, log included."""
    folder = Path(tempfile.mkdtemp())
    for name in ("ringback.db", "ringback.db-wal"):
        if (data / name).exists():
            shutil.copy(data / name, folder / name)
    connection = sqlite3.connect(folder / "ringback.db")
    connection.create_function("as_json", 1, as_json)
    connection.create_function("text_id", 2, text_id)
    connection.executescript(VIEWS)
    connection.row_factory = sqlite3.Row
    return connection


def in_order(rows):
    """Rows of the same time have no order."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def make(peer, number, parent=None):
    stored = store(peer, f"content {number}".encode())
    fields = {"content_hash": stored["hash"], "creator": "ada", "tags": ["type:midi"], "metadata": {"n": number}}
    created = peer.success("artifact_create", fields | ({"parent_id": parent} if parent else {}))
    peer.success("add_annotation", {
        "artifact_id": created["artifact_id"], "message": f"remark {number}", "vibe": "warm and slow",
    })
    return created["artifact_id"]


@check
def another_sqlite_gives_the_answers_of_an_administrator_for_each_example(world):
    with world.peer() as peer:
        first = make(peer, 1)
        second = make(peer, 2, first)
        abc = "X:1\nT:Lineage\nK:C\nCDEF|"
        tune = peer.success("abc_to_midi", {"abc": abc}, wait_ms=20000)
        given = {"id": first, "since": 0, "tag": "type:midi", "vibe": "%warm%", "view": "artifacts",
                 "session": "gogol_" + "0" * 32, "kind": "usb_device_id", "value": "0582:0074"}
        connection = copy_of(world.daemon.home / "data")
        compared = 0
        for sql, names in examples():
            if "FROM help" in sql:
                continue
            for identity in (first, second, tune.get("artifact_id", first)):
                values = {name: given[name] for name in names} | ({"id": identity} if "id" in names else {})
                answer = peer.success("graph_query", {"query": sql, "variables": values, "limit": 1000})
                expected = [dict(row) for row in connection.execute(sql, values)]
                assert not answer["truncated"] and answer["count"] == len(expected), (sql, answer)
                assert in_order(answer["results"]) == in_order(expected), (sql, answer, expected)
                compared += len(expected)
        assert compared > 10, compared
        children = peer.success("graph_query", {
            "query": "SELECT id FROM artifacts WHERE parent_id = :id", "variables": {"id": first},
        })
        assert children["results"] == [{"id": second}], children
