-- Hostile queries for graph_query, one in each paragraph. Run beside rows of another owner, none of
-- them may reveal one: not in a row, a count or an error. `{id}` is the id of an artifact of another
-- owner.

-- Names of views for other things.

WITH artifacts AS (SELECT secret_hash FROM main.token) SELECT * FROM artifacts

WITH artifacts AS (SELECT * FROM main.artifact) SELECT * FROM artifacts

WITH artifacts(x) AS (SELECT creator FROM artifact) SELECT count(*) FROM artifacts

WITH RECURSIVE artifacts(x) AS (SELECT secret_hash FROM token UNION SELECT x FROM artifacts) SELECT * FROM artifacts

WITH "artifacts" AS MATERIALIZED (SELECT metadata FROM main.artifact) SELECT count(*) FROM "artifacts"

WITH token AS (SELECT 1) SELECT count(*) FROM main.token

WITH token AS (SELECT 1) SELECT count(*) FROM token

SELECT * FROM main.artifact AS artifacts

SELECT * FROM artifact artifacts JOIN token ON 1

SELECT (SELECT secret_hash FROM token LIMIT 1) AS artifacts

SELECT artifacts.secret_hash FROM token AS artifacts

WITH help AS (SELECT name AS about FROM token) SELECT about FROM help

WITH sessions AS (SELECT * FROM session), jobs AS (SELECT request FROM job) SELECT * FROM sessions, jobs

-- Quoted and qualified names.

SELECT * FROM "main"."token"

SELECT * FROM [token]

SELECT * FROM `token`

SELECT * FROM 'token'

SELECT * FROM main.'artifact'

SELECT * FROM temp.token

SELECT "secret_hash" FROM "token"

SELECT "owner" FROM artifacts

SELECT artifacts.owner FROM artifacts

SELECT rowid FROM artifacts

SELECT _rowid_, oid FROM main.artifact

SELECT n FROM artifacts

-- Counts and existence.

SELECT count(*) FROM main.artifact

SELECT count(*) FROM artifact

SELECT count(*) FROM (SELECT 1 FROM main.token)

SELECT EXISTS (SELECT 1 FROM main.token)

SELECT 1 WHERE EXISTS (SELECT NULL FROM job_count)

SELECT count(*) FROM artifact_list

SELECT * FROM artifacts WHERE id = '{id}'

SELECT count(*) FROM artifacts WHERE parent_id = '{id}'

SELECT count(*) FROM annotations WHERE artifact_id = '{id}'

SELECT count(*) FROM sources WHERE artifact_id = '{id}' OR source_id = '{id}'

SELECT artifact_id FROM heard WHERE artifact_id IS NOT NULL

SELECT name, mime_type, gain_db FROM regions WHERE name LIKE 'canary%'

SELECT max(rowid) FROM artifact_words

-- The schema of SQLite.

SELECT * FROM sqlite_schema

SELECT * FROM sqlite_master

SELECT sql FROM main.sqlite_schema

SELECT * FROM sqlite_temp_schema

SELECT name FROM temp.sqlite_master

SELECT count(*) FROM sqlite_temp_master

SELECT * FROM sqlite_stat1

SELECT * FROM sqlite_sequence

SELECT * FROM dbstat

SELECT sum(pgsize) FROM dbstat WHERE name = 'artifact'

-- Table-valued functions and virtual tables.

SELECT * FROM pragma_table_info('token')

SELECT * FROM pragma_database_list

SELECT count(*) FROM pragma_module_list

SELECT * FROM json_each('[1, 2]')

SELECT count(*) FROM json_tree('{"a": 1}')

SELECT * FROM artifact_words WHERE artifact_words MATCH 'canary'

SELECT * FROM artifact_words('canary')

SELECT * FROM fts5vocab

SELECT * FROM artifacts WHERE creator MATCH 'canary'

SELECT * FROM artifacts WHERE creator REGEXP 'canary'

SELECT highlight(artifact_words, 0, '', '') FROM artifact_words

-- Errors that would tell of a row.

SELECT count(*) FROM artifacts WHERE abs(CASE WHEN creator = 'canary' THEN -9223372036854775807 - 1 ELSE 1 END)

SELECT count(*) FROM artifacts WHERE created_at > 0 AND abs(CASE WHEN creator LIKE 'can%' THEN -9223372036854775807 - 1 ELSE 1 END) = 1

SELECT id FROM artifacts WHERE abs(CASE WHEN id > 'art_00000000000000000000000000000003' THEN -9223372036854775807 - 1 ELSE 1 END) AND id > 'art_'

SELECT count(*) FROM annotations WHERE json_extract(message, '$.a') = 1

SELECT count(*) FROM annotations WHERE message -> '$' = 1

SELECT count(*) FROM artifacts WHERE length(creator || CASE WHEN creator = 'canary' THEN printf('%70000c', 'x') ELSE '' END) > 0

SELECT count(*) FROM artifacts WHERE replace(creator, 'canary', printf('%65000c', 'x') || printf('%65000c', 'x')) = ''

SELECT count(*) FROM artifacts WHERE 'x' LIKE CASE WHEN creator = 'canary' THEN printf('%300c', 'x') ELSE 'x' END

SELECT count(*) FROM artifacts WHERE creator LIKE 'x' ESCAPE creator

SELECT count(*) FROM artifacts a WHERE (SELECT sum(CASE WHEN a.creator = 'canary' THEN 9223372036854775807 ELSE 0 END) FROM help) >= 0

SELECT count(*) FROM artifacts a WHERE (SELECT 1 FROM help LIMIT CASE WHEN a.creator = 'canary' THEN 'x' ELSE 1 END) = 1

SELECT count(*) FROM artifacts a WHERE (SELECT ntile(CASE WHEN a.creator = 'canary' THEN 0 ELSE 1 END) OVER () FROM help) = 1

SELECT count(*) FROM artifacts a WHERE EXISTS (SELECT DISTINCT a.metadata, a.metadata, a.metadata FROM help)

SELECT count(*) FROM artifacts ORDER BY abs(CASE WHEN max(creator) = 'canary' THEN -9223372036854775807 - 1 ELSE 1 END)

SELECT count(*) FROM artifacts a LEFT JOIN annotations n ON n.artifact_id = a.id AND abs(CASE WHEN n.message = 'canary' THEN -9223372036854775807 - 1 ELSE 1 END)

SELECT count(*) FROM jobs WHERE abs(CASE WHEN tool = 'canary' THEN -9223372036854775807 - 1 ELSE 1 END)

SELECT count(*) FROM identities WHERE json(name) = ''

-- Writing, files, pragmas, other databases.

DELETE FROM artifacts

DELETE FROM main.artifact

UPDATE artifacts SET creator = 'me'

UPDATE main.token SET level = 2

INSERT INTO main.artifact_tag VALUES (1, 'x')

REPLACE INTO help VALUES ('a', 'b', 'c')

INSERT INTO artifact_words (artifact_words) VALUES ('rebuild')

CREATE TEMP TABLE copy AS SELECT * FROM main.token

CREATE TEMP VIEW artifacts2 AS SELECT * FROM main.token

CREATE TEMP TRIGGER t AFTER INSERT ON main.artifact BEGIN SELECT 1; END

CREATE VIRTUAL TABLE temp.v USING dbstat

DROP VIEW artifacts

DROP TABLE main.artifact

ALTER TABLE main.artifact ADD COLUMN x

ATTACH DATABASE '/tmp/ringback-attack.db' AS other

DETACH DATABASE main

VACUUM INTO '/tmp/ringback-attack.db'

PRAGMA query_only = 0

PRAGMA writable_schema = 1

PRAGMA table_info(token)

PRAGMA temp_store_directory = '/tmp'

ANALYZE

REINDEX

BEGIN

COMMIT

SAVEPOINT x

SELECT load_extension('/tmp/x.so')

SELECT readfile('/etc/passwd')

SELECT writefile('/tmp/ringback-attack', 'x')

SELECT edit('x')

SELECT fts3_tokenizer('simple')

SELECT randomblob(1000)

SELECT random()

SELECT sqlite_version()

SELECT sqlite_source_id()

SELECT changes(), total_changes(), last_insert_rowid()

SELECT as_json(x'81a16101')

SELECT error_code(x'80')

-- Not one statement.

SELECT 1; DELETE FROM main.artifact

SELECT 1; SELECT secret_hash FROM token

EXPLAIN SELECT * FROM artifacts

EXPLAIN QUERY PLAN SELECT * FROM artifacts

;

-- Bombs: rows, strings, sorts, names, plans.

WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c

WITH RECURSIVE c(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM c) SELECT max(length(x)) FROM c

WITH RECURSIVE c(x) AS (SELECT 1 UNION SELECT x + 1 FROM c) SELECT count(*) FROM c

WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c ORDER BY -x

WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT DISTINCT printf('%60000d', x) AS y FROM c ORDER BY y

WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT group_concat(x) FROM c

WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT json_group_array(x) FROM c

SELECT count(*) FROM help a, help b, help c, help d, help e, help f

SELECT length(printf('%1000000000c', 'x'))

SELECT hex(zeroblob(1000000000))

SELECT replace(printf('%60000c', 'a'), 'a', printf('%60000c', 'b'))

SELECT trim(printf('%60000c', 'a'), printf('%60000c', 'a'))

SELECT printf('%60000c', 'a') LIKE printf('%60000c', '%')

SELECT printf('%60000c', 'a') GLOB '*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b'

WITH a AS (SELECT 1), b AS (SELECT * FROM a, a), c AS (SELECT * FROM b, b), d AS (SELECT * FROM c, c), e AS (SELECT * FROM d, d), f AS (SELECT * FROM e, e), g AS (SELECT * FROM f, f), h AS (SELECT * FROM g, g), i AS (SELECT * FROM h, h), j AS (SELECT * FROM i, i), k AS (SELECT * FROM j, j), l AS (SELECT * FROM k, k), m AS (SELECT * FROM l, l), n AS (SELECT * FROM m, m), o AS (SELECT * FROM n, n), p AS (SELECT * FROM o, o), q AS (SELECT * FROM p, p), r AS (SELECT * FROM q, q), s AS (SELECT * FROM r, r), t AS (SELECT * FROM s, s), u AS (SELECT * FROM t, t), v AS (SELECT * FROM u, u), w AS (SELECT * FROM v, v), x AS (SELECT * FROM w, w), y AS (SELECT * FROM x, x), z AS (SELECT * FROM y, y) SELECT count(*) FROM z

SELECT ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))

SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9 UNION SELECT 10 UNION SELECT 11

SELECT * FROM artifacts a NATURAL JOIN artifacts b NATURAL JOIN artifacts c NATURAL JOIN artifacts d NATURAL JOIN artifacts e NATURAL JOIN artifacts f NATURAL JOIN artifacts g NATURAL JOIN artifacts h

SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT x+x AS x FROM (SELECT length(about) AS x FROM help))))))))))))))))))))))

WITH a(x) AS (SELECT length(about) FROM help), b(x) AS (SELECT x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x FROM a), c(x) AS (SELECT x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x FROM b), d(x) AS (SELECT x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x FROM c), e(x) AS (SELECT x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x FROM d) SELECT x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x+x AS x FROM e

SELECT * FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT DISTINCT x+x AS x FROM (SELECT length(about) AS x FROM help))))))))))))))))))))))) WHERE x = 1

WITH t AS MATERIALIZED (SELECT printf('%*c', 50000 + length(about), 'a') AS s FROM help LIMIT 5) SELECT count(*) FROM t a, t b, t c WHERE a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c' OR a.s GLOB '*[a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b][a-b]c'

WITH t AS MATERIALIZED (SELECT printf('%*c', 50000 + length(about), 'a') AS s FROM help LIMIT 5) SELECT count(*) FROM t WHERE instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0 OR instr(s, printf('%25000c', 'a') || 'b') > 0

WITH t0 as(t1),t1 as(t2),t2 as(t3),t3 as(t4),t4 as(t5),t5 as(t6),t6 as(t7),t7 as(t8),t8 as(t9),t9 as(t10),t10 as(t11),t11 as(t12),t12 as(t13),t13 as(t14),t14 as(t15),t15 as(t16),t16 as(t17),t17 as(t18),t18 as(t19),t19 as(t20),t20 as(t21),t21 as(t22),t22 as(t23),t23 as(t24),t24 as(t25),t25 as(t26),t26 as(t27),t27 as(t28),t28 as(t29),t29 as(t30),t30 as(t31),t31 as(t32),t32 as(t33),t33 as(t34),t34 as(t35),t35 as(t36),t36 as(t37),t37 as(t38),t38 as(t39),t39 as(t40),t40 as(t41),t41 as(t42),t42 as(t43),t43 as(t44),t44 as(t45),t45 as(t46),t46 as(t47),t47 as(t48),t48 as(t49),t49 as(t50),t50 as(t51),t51 as(t52),t52 as(t53),t53 as(t54),t54 as(t55),t55 as(t56),t56 as(t57),t57 as(t58),t58 as(t59),t59 as(t60),t60 as(t61),t61 as(t62),t62 as(t63),t63 as(t64),t64 as(t65),t65 as(t66),t66 as(t67),t67 as(t68),t68 as(t69),t69 as(t70),t70 as(t71),t71 as(t72),t72 as(t73),t73 as(t74),t74 as(t75),t75 as(t76),t76 as(t77),t77 as(t78),t78 as(t79),t79 as(t80),t80 as(t81),t81 as(t82),t82 as(t83),t83 as(t84),t84 as(t85),t85 as(t86),t86 as(t87),t87 as(t88),t88 as(t89),t89 as(t90),t90 as(t91),t91 as(t92),t92 as(t93),t93 as(t94),t94 as(t95),t95 as(t96),t96 as(t97),t97 as(t98),t98 as(t99),t99 as(t100),t100 as(t101),t101 as(t102),t102 as(t103),t103 as(t104),t104 as(t105),t105 as(t106),t106 as(t107),t107 as(t108),t108 as(t109),t109 as(t110),t110 as(t111),t111 as(t112),t112 as(t113),t113 as(t114),t114 as(t115),t115 as(t116),t116 as(t117),t117 as(t118),t118 as(t119),t119 as(t120),t120 as(t121),t121 as(t122),t122 as(t123),t123 as(t124),t124 as(t125),t125 as(t126),t126 as(t127),t127 as(t128),t128 as(t129),t129 as(t130),t130 as(t131),t131 as(t132),t132 as(t133),t133 as(t134),t134 as(t135),t135 as(t136),t136 as(t137),t137 as(t138),t138 as(t139),t139 as(t140),t140 as(t141),t141 as(t142),t142 as(t143),t143 as(t144),t144 as(t145),t145 as(t146),t146 as(t147),t147 as(t148),t148 as(t149),t149 as(t150),t150 as(t151),t151 as(t152),t152 as(t153),t153 as(t154),t154 as(t155),t155 as(t156),t156 as(t157),t157 as(t158),t158 as(t159),t159 as(t160),t160 as(t161),t161 as(t162),t162 as(t163),t163 as(t164),t164 as(t165),t165 as(t166),t166 as(t167),t167 as(t168),t168 as(t169),t169 as(t170),t170 as(t171),t171 as(t172),t172 as(t173),t173 as(t174),t174 as(t175),t175 as(t176),t176 as(t177),t177 as(t178),t178 as(t179),t179 as(t180),t180 as(t181),t181 as(t182),t182 as(t183),t183 as(t184),t184 as(t185),t185 as(t186),t186 as(t187),t187 as(t188),t188 as(t189),t189 as(t190),t190 as(t191),t191 as(t192),t192 as(t193),t193 as(t194),t194 as(t195),t195 as(t196),t196 as(t197),t197 as(t198),t198 as(t199),t199 as(t200),t200 as(t201),t201 as(t202),t202 as(t203),t203 as(t204),t204 as(t205),t205 as(t206),t206 as(t207),t207 as(t208),t208 as(t209),t209 as(t210),t210 as(t211),t211 as(t212),t212 as(t213),t213 as(t214),t214 as(t215),t215 as(t216),t216 as(t217),t217 as(t218),t218 as(t219),t219 as(t220),t220 as(t221),t221 as(t222),t222 as(t223),t223 as(t224),t224 as(t225),t225 as(t226),t226 as(t227),t227 as(t228),t228 as(t229),t229 as(t230),t230 as(t231),t231 as(t232),t232 as(t233),t233 as(t234),t234 as(t235),t235 as(t236),t236 as(t237),t237 as(t238),t238 as(t239),t239 as(t240),t240 as(t241),t241 as(t242),t242 as(t243),t243 as(t244),t244 as(t245),t245 as(t246),t246 as(t247),t247 as(t248),t248 as(t249),t249 as(t250),t250 as(t251),t251 as(t252),t252 as(t253),t253 as(t254),t254 as(t255),t255 as(t256),t256 as(t257),t257 as(t258),t258 as(t259),t259 as(t260),t260 as(t261),t261 as(t262),t262 as(t263),t263 as(t264),t264 as(t265),t265 as(t266),t266 as(t267),t267 as(t268),t268 as(t269),t269 as(t270),t270 as(t271),t271 as(t272),t272 as(t273),t273 as(t274),t274 as(t275),t275 as(t276),t276 as(t277),t277 as(t278),t278 as(t279),t279 as(t280),t280 as(t281),t281 as(t282),t282 as(t283),t283 as(t284),t284 as(t285),t285 as(t286),t286 as(t287),t287 as(t288),t288 as(t289),t289 as(t290),t290 as(t291),t291 as(t292),t292 as(t293),t293 as(t294),t294 as(t295),t295 as(t296),t296 as(t297),t297 as(t298),t298 as(t299),t299 as(t300),t300 as(t301),t301 as(t302),t302 as(t303),t303 as(t304),t304 as(t305),t305 as(t306),t306 as(t307),t307 as(t308),t308 as(t309),t309 as(t310),t310 as(t311),t311 as(t312),t312 as(t313),t313 as(t314),t314 as(t315),t315 as(t316),t316 as(t317),t317 as(t318),t318 as(t319),t319 as(t320),t320 as(t321),t321 as(t322),t322 as(t323),t323 as(t324),t324 as(t325),t325 as(t326),t326 as(t327),t327 as(t328),t328 as(t329),t329 as(t330),t330 as(t331),t331 as(t332),t332 as(t333),t333 as(t334),t334 as(t335),t335 as(t336),t336 as(t337),t337 as(t338),t338 as(t339),t339 as(t340),t340 as(t341),t341 as(t342),t342 as(t343),t343 as(t344),t344 as(t345),t345 as(t346),t346 as(t347),t347 as(t348),t348 as(t349),t349 as(t350),t350 as(t351),t351 as(t352),t352 as(t353),t353 as(t354),t354 as(t355),t355 as(t356),t356 as(t357),t357 as(t358),t358 as(t359),t359 as(t360),t360 as(t361),t361 as(t362),t362 as(t363),t363 as(t364),t364 as(t365),t365 as(t366),t366 as(t367),t367 as(t368),t368 as(t369),t369 as(t370),t370 as(t371),t371 as(t372),t372 as(t373),t373 as(t374),t374 as(t375),t375 as(t376),t376 as(t377),t377 as(t378),t378 as(t379),t379 as(t380),t380 as(t381),t381 as(t382),t382 as(t383),t383 as(t384),t384 as(t385),t385 as(t386),t386 as(t387),t387 as(t388),t388 as(t389),t389 as(t390),t390 as(t391),t391 as(t392),t392 as(t393),t393 as(t394),t394 as(t395),t395 as(t396),t396 as(t397),t397 as(t398),t398 as(t399),t399 as(t400),t400 as(t401),t401 as(t402),t402 as(t403),t403 as(t404),t404 as(t405),t405 as(t406),t406 as(t407),t407 as(t408),t408 as(t409),t409 as(t410),t410 as(t411),t411 as(t412),t412 as(t413),t413 as(t414),t414 as(t415),t415 as(t416),t416 as(t417),t417 as(t418),t418 as(t419),t419 as(t420),t420 as(t421),t421 as(t422),t422 as(t423),t423 as(t424),t424 as(t425),t425 as(t426),t426 as(t427),t427 as(t428),t428 as(t429),t429 as(t430),t430 as(t431),t431 as(t432),t432 as(t433),t433 as(t434),t434 as(t435),t435 as(t436),t436 as(t437),t437 as(t438),t438 as(t439),t439 as(t440),t440 as(t441),t441 as(t442),t442 as(t443),t443 as(t444),t444 as(t445),t445 as(t446),t446 as(t447),t447 as(t448),t448 as(t449),t449 as(t450),t450 as(t451),t451 as(t452),t452 as(t453),t453 as(t454),t454 as(t455),t455 as(t456),t456 as(t457),t457 as(t458),t458 as(t459),t459 as(t460),t460 as(t461),t461 as(t462),t462 as(t463),t463 as(t464),t464 as(t465),t465 as(t466),t466 as(t467),t467 as(t468),t468 as(t469),t469 as(t470),t470 as(t471),t471 as(t472),t472 as(t473),t473 as(t474),t474 as(t475),t475 as(t476),t476 as(t477),t477 as(t478),t478 as(t479),t479 as(t480),t480 as(t481),t481 as(t482),t482 as(t483),t483 as(t484),t484 as(t485),t485 as(t486),t486 as(t487),t487 as(t488),t488 as(t489),t489 as(t490),t490 as(t491),t491 as(t492),t492 as(t493),t493 as(t494),t494 as(t495),t495 as(t496),t496 as(t497),t497 as(t498),t498 as(t499),t499 as(t500),t500 as(t501),t501 as(t502),t502 as(t503),t503 as(t504),t504 as(t505),t505 as(t506),t506 as(t507),t507 as(t508),t508 as(t509),t509 as(t510),t510 as(t511),t511 as(t512),t512 as(t513),t513 as(t514),t514 as(t515),t515 as(t516),t516 as(t517),t517 as(t518),t518 as(t519),t519 as(t520),t520 as(t521),t521 as(t522),t522 as(t523),t523 as(t524),t524 as(t525),t525 as(t526),t526 as(t527),t527 as(t528),t528 as(t529),t529 as(t530),t530 as(t531),t531 as(t532),t532 as(t533),t533 as(t534),t534 as(t535),t535 as(t536),t536 as(t537),t537 as(t538),t538 as(t539),t539 as(t540),t540 as(t541),t541 as(t542),t542 as(t543),t543 as(t544),t544 as(t545),t545 as(t546),t546 as(t547),t547 as(t548),t548 as(t549),t549 as(t550),t550 as(t551),t551 as(t552),t552 as(t553),t553 as(t554),t554 as(t555),t555 as(t556),t556 as(t557),t557 as(t558),t558 as(t559),t559 as(t560),t560 as(t561),t561 as(t562),t562 as(t563),t563 as(t564),t564 as(t565),t565 as(t566),t566 as(t567),t567 as(t568),t568 as(t569),t569 as(t570),t570 as(t571),t571 as(t572),t572 as(t573),t573 as(t574),t574 as(t575),t575 as(t576),t576 as(t577),t577 as(t578),t578 as(t579),t579 as(t580),t580 as(t581),t581 as(t582),t582 as(t583),t583 as(t584),t584 as(t585),t585 as(t586),t586 as(t587),t587 as(t588),t588 as(t589),t589 as(t590),t590 as(t591),t591 as(t592),t592 as(t593),t593 as(t594),t594 as(t595),t595 as(t596),t596 as(t597),t597 as(t598),t598 as(t599),t599 as(t600),t600 as(t601),t601 as(t602),t602 as(t603),t603 as(t604),t604 as(t605),t605 as(t606),t606 as(t607),t607 as(t608),t608 as(t609),t609 as(t610),t610 as(t611),t611 as(t612),t612 as(t613),t613 as(t614),t614 as(t615),t615 as(t616),t616 as(t617),t617 as(t618),t618 as(t619),t619 as(t620),t620 as(t621),t621 as(t622),t622 as(t623),t623 as(t624),t624 as(t625),t625 as(t626),t626 as(t627),t627 as(t628),t628 as(t629),t629 as(t630),t630 as(t631),t631 as(t632),t632 as(t633),t633 as(t634),t634 as(t635),t635 as(t636),t636 as(t637),t637 as(t638),t638 as(t639),t639 as(t640),t640 as(t641),t641 as(t642),t642 as(t643),t643 as(t644),t644 as(t645),t645 as(t646),t646 as(t647),t647 as(t648),t648 as(t649),t649 as(t650),t650 as(t651),t651 as(t652),t652 as(t653),t653 as(t654),t654 as(t655),t655 as(t656),t656 as(t657),t657 as(t658),t658 as(t659),t659 as(t660),t660 as(t661),t661 as(t662),t662 as(t663),t663 as(t664),t664 as(t665),t665 as(t666),t666 as(t667),t667 as(t668),t668 as(t669),t669 as(t670),t670 as(t671),t671 as(t672),t672 as(t673),t673 as(t674),t674 as(t675),t675 as(t676),t676 as(t677),t677 as(t678),t678 as(t679),t679 as(t680),t680 as(t681),t681 as(t682),t682 as(t683),t683 as(t684),t684 as(t685),t685 as(t686),t686 as(t687),t687 as(t688),t688 as(t689),t689 as(t690),t690 as(t691),t691 as(t692),t692 as(t693),t693 as(t694),t694 as(t695),t695 as(t696),t696 as(t697),t697 as(t698),t698 as(t699),t699 as(t700),t700 as(t701),t701 as(t702),t702 as(t703),t703 as(t704),t704 as(t705),t705 as(t706),t706 as(t707),t707 as(t708),t708 as(t709),t709 as(t710),t710 as(t711),t711 as(t712),t712 as(t713),t713 as(t714),t714 as(t715),t715 as(t716),t716 as(t717),t717 as(t718),t718 as(t719),t719 as(t720),t720 as(t721),t721 as(t722),t722 as(t723),t723 as(t724),t724 as(t725),t725 as(t726),t726 as(t727),t727 as(t728),t728 as(t729),t729 as(t730),t730 as(t731),t731 as(t732),t732 as(t733),t733 as(t734),t734 as(t735),t735 as(t736),t736 as(t737),t737 as(t738),t738 as(t739),t739 as(t740),t740 as(t741),t741 as(t742),t742 as(t743),t743 as(t744),t744 as(t745),t745 as(t746),t746 as(t747),t747 as(t748),t748 as(t749),t749 as(t750),t750 as(t751),t751 as(t752),t752 as(t753),t753 as(t754),t754 as(t755),t755 as(t756),t756 as(t757),t757 as(t758),t758 as(t759),t759 as(t760),t760 as(t761),t761 as(t762),t762 as(t763),t763 as(t764),t764 as(t765),t765 as(t766),t766 as(t767),t767 as(t768),t768 as(t769),t769 as(t770),t770 as(t771),t771 as(t772),t772 as(t773),t773 as(t774),t774 as(t775),t775 as(t776),t776 as(t777),t777 as(t778),t778 as(t779),t779 as(t780),t780 as(t781),t781 as(t782),t782 as(t783),t783 as(t784),t784 as(t785),t785 as(t786),t786 as(t787),t787 as(t788),t788 as(t789),t789 as(t790),t790 as(t791),t791 as(t792),t792 as(t793),t793 as(t794),t794 as(t795),t795 as(t796),t796 as(t797),t797 as(t798),t798 as(t799),t799 as(t800),t800 as(t801),t801 as(t802),t802 as(t803),t803 as(t804),t804 as(t805),t805 as(t806),t806 as(t807),t807 as(t808),t808 as(t809),t809 as(t810),t810 as(t811),t811 as(t812),t812 as(t813),t813 as(t814),t814 as(t815),t815 as(t816),t816 as(t817),t817 as(t818),t818 as(t819),t819 as(t820),t820 as(t821),t821 as(t822),t822 as(t823),t823 as(t824),t824 as(t825),t825 as(t826),t826 as(t827),t827 as(t828),t828 as(t829),t829 as(t830),t830 as(t831),t831 as(t832),t832 as(t833),t833 as(t834),t834 as(t835),t835 as(t836),t836 as(t837),t837 as(t838),t838 as(t839),t839 as(t840),t840 as(t841),t841 as(t842),t842 as(t843),t843 as(t844),t844 as(t845),t845 as(t846),t846 as(t847),t847 as(t848),t848 as(t849),t849 as(t850),t850 as(t851),t851 as(t852),t852 as(t853),t853 as(t854),t854 as(t855),t855 as(t856),t856 as(t857),t857 as(t858),t858 as(t859),t859 as(t860),t860 as(t861),t861 as(t862),t862 as(t863),t863 as(t864),t864 as(t865),t865 as(t866),t866 as(t867),t867 as(t868),t868 as(t869),t869 as(t870),t870 as(t871),t871 as(t872),t872 as(t873),t873 as(t874),t874 as(t875),t875 as(t876),t876 as(t877),t877 as(t878),t878 as(t879),t879 as(t880),t880 as(t881),t881 as(t882),t882 as(t883),t883 as(t884),t884 as(t885),t885 as(t886),t886 as(t887),t887 as(t888),t888 as(t889),t889 as(t890),t890 as(t891),t891 as(t892),t892 as(t893),t893 as(t894),t894 as(t895),t895 as(t896),t896 as(t897),t897 as(t898),t898 as(t899),t899 as(t900),t900 as(t901),t901 as(t902),t902 as(t903),t903 as(t904),t904 as(t905),t905 as(t906),t906 as(t907),t907 as(t908),t908 as(t909),t909 as(t910),t910 as(t911),t911 as(t912),t912 as(t913),t913 as(t914),t914 as(t915),t915 as(t916),t916 as(t917),t917 as(t918),t918 as(t919),t919 as(t920),t920 as(t921),t921 as(t922),t922 as(t923),t923 as(t924),t924 as(t925),t925 as(t926),t926 as(t927),t927 as(t928),t928 as(t929),t929 as(t930),t930 as(t931),t931 as(t932),t932 as(t933),t933 as(t934),t934 as(t935),t935 as(t936),t936 as(t937),t937 as(t938),t938 as(t939),t939 as(t940),t940 as(t941),t941 as(t942),t942 as(t943),t943 as(t944),t944 as(t945),t945 as(t946),t946 as(t947),t947 as(t948),t948 as(t949),t949 as(t950) SELECT 1

-- Names of inner views.

SELECT * FROM inner_00000000000000000000000000000000_artifacts

WITH inner_0_artifacts AS (SELECT secret_hash FROM token) SELECT * FROM inner_0_artifacts

SELECT nothing FROM artifacts, annotations, sources, jobs

SELECT artifacts.nothing FROM artifacts JOIN annotations USING (nothing)

SELECT id FROM artifacts GROUP BY nothing HAVING nothing

SELECT id FROM artifacts, annotations
