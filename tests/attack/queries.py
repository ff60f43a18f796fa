"""Queries: SQL that wants rows, counts and errors of another owner, to write, or to take all time and memory."""

import re
import time
from pathlib import Path
from threading import Thread

from world import quick

CANARY = "canary"
# Seconds for one query: its second, five to wait for its turn, and a slow machine.
LIMIT = 20
# MiB that a daemon may grow by while queries do their worst.
GROWTH_MAX = 48


def hostile(identity):
    """The queries of `queries.sql`, without comments."""
    text = Path(__file__).with_name("queries.sql").read_text()
    for paragraph in text.split("\n\n"):
        sql = "\n".join(line for line in paragraph.splitlines() if not line.startswith("--")).strip()
        if sql:
            yield sql.replace("{id}", identity)


def make(target, token, word):
    """An artifact with a word in every field that its caller chooses."""
    with target.peer(token) as peer:
        stored = peer.success("cas_store", {"data": word.encode(), "mime_type": "text/plain"})
        created = peer.success("artifact_create", {
            "content_hash": stored["hash"], "creator": word, "tags": [word], "metadata": {"k": word},
        })
        peer.success("add_annotation", {
            "artifact_id": created["artifact_id"], "message": word, "source": word, "vibe": word,
        })
    return created["artifact_id"]


@quick
def no_query_reveals_a_row_of_another_owner(world):
    target = world.target()
    owner, stranger = target.new_token("write")[0], target.new_token("write")[0]
    hidden = make(target, owner, CANARY)
    make(target, stranger, "mine")
    database = target.data / "ringback.db"
    number = 0
    for sql in hostile(hidden):
        answer = target.tool("graph_query", {"query": sql}, stranger, limit=LIMIT)
        number += 1
        said = answer.body.decode()
        assert answer.status != 500, (sql, answer)
        shown = said.replace(sql, "")
        assert hidden not in shown or hidden in sql, (sql, answer)
        assert not re.search(r"inner_[0-9a-f]{32}", said) or "inner_" in sql, (sql, answer)
        if CANARY not in sql:
            assert CANARY not in said, (sql, answer)
        elif answer.status == 200:
            assert answer.json["result"]["results"] in ([], [{"count(*)": 1}], [{"count(*)": 0}]), (sql, answer)
    assert number > 120, number
    assert database.exists() and not Path("/tmp/ringback-attack.db").exists()
    own = target.done("graph_query", {"query": "SELECT creator FROM artifacts"}, token=stranger)
    assert own["results"] == [{"creator": "mine"}], own
    target.is_well()


@quick
def queries_that_do_their_worst_slow_no_one_and_take_no_memory(world):
    target = world.target()
    tokens = [target.new_token("read")[0] for _ in range(2)]
    rows = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
    worst = rows + "SELECT DISTINCT printf('%60000d', x) AS y FROM c ORDER BY y"
    before = target.resident()
    outcomes = []

    def ask(token):
        for _ in range(3):
            outcomes.append(target.tool("graph_query", {"query": worst}, token, limit=LIMIT).code)

    threads = [Thread(target=ask, args=(token,)) for token in tokens]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert target.tool("ping").status == 200
        assert target.resident() - before < GROWTH_MAX, (before, target.resident())
    assert set(outcomes) <= {"TIMEOUT", "TOO_LARGE"} and len(outcomes) == 6, outcomes
    target.is_well()


@quick
def queries_that_grow_while_they_are_compiled_take_neither_memory_nor_time(world):
    target = world.target()
    token = target.new_token("read")[0]
    nested = "SELECT length(about) AS x FROM help"
    pushed = nested
    for _ in range(24):
        nested = f"SELECT x+x AS x FROM ({nested})"
        pushed = f"SELECT DISTINCT x+x AS x FROM ({pushed})"
    terms = "+".join("x" * 40)
    tables = ", ".join(f"t{n}(x) AS (SELECT {terms} FROM t{n - 1})" for n in range(1, 6))
    texts = ("WITH t AS MATERIALIZED (SELECT printf('%*c', 50000 + length(about), 'a') AS s FROM help) "
             "SELECT count(*) FROM t WHERE ")
    glob = "s GLOB '*" + "[a-b]" * 50 + "c'"
    place = "instr(s, printf('%25000c', 'a') || 'b') > 0"
    bombs = [
        nested,
        f"SELECT * FROM ({pushed}) WHERE x = 1",
        f"WITH t0(x) AS (SELECT length(about) FROM help), {tables} SELECT {terms} AS x FROM t5",
        texts + " OR ".join([glob] * 45),
        texts + " OR ".join([place] * 45),
        "WITH " + ",".join(f"t{n} as(t{n + 1})" for n in range(900)) + " SELECT 1 AS x",
    ]
    before = target.resident()
    for sql in bombs:
        started = time.monotonic()
        answer = target.tool("graph_query", {"query": sql}, token, limit=LIMIT)
        took = time.monotonic() - started
        assert answer.status != 500, (sql[:200], answer)
        assert took < LIMIT / 4, (sql[:200], took)
        assert target.resident() - before < GROWTH_MAX, (sql[:200], before, target.resident())
        assert target.done("graph_query", {"query": "SELECT 1 AS x"}, token=token)["results"] == [{"x": 1}]
    target.is_well()
