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

-- Names of inner views.

SELECT * FROM inner_00000000000000000000000000000000_artifacts

WITH inner_0_artifacts AS (SELECT secret_hash FROM token) SELECT * FROM inner_0_artifacts

SELECT nothing FROM artifacts, annotations, sources, jobs

SELECT artifacts.nothing FROM artifacts JOIN annotations USING (nothing)

SELECT id FROM artifacts GROUP BY nothing HAVING nothing

SELECT id FROM artifacts, annotations
