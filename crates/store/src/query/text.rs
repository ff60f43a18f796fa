//! What the text of a query shows before SQLite reads it: its tokens, how large its common table
//! expressions become, and whether one of its expressions could fail.

/// How often a query may use views and common table expressions, those in each other included.
/// SQLite copies one at each use. The budget would end such a query too; this error says why.
pub(super) const EXPANSIONS_MAX: u64 = 100;

/// The most common table expressions of a query: counting their uses takes the square of it.
pub(super) const TABLES_MAX: usize = 64;

/// The most bytes of a pattern for LIKE and GLOB: a longer one on a long text takes seconds, in
/// which nothing can interrupt it.
pub(super) const PATTERN_BYTES_MAX: usize = 256;

/// A token of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    /// As written, with quotes.
    pub(super) text: &'a str,
    /// Its position in the query, in bytes.
    pub(super) at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword or a name.
    Word,
    /// A name in `"…"`, `[…]` or backticks.
    Quoted,
    /// A string.
    Text,
    /// `:name` and other forms of a variable.
    Variable,
    /// A number, or an operator of one character; `||` is two of them.
    Other,
}

impl Token<'_> {
    fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    fn is_mark(&self, mark: &str) -> bool {
        self.kind == TokenKind::Other && self.text == mark
    }

    /// Returns the name that the token stands for, if it can be one.
    pub(super) fn name(&self) -> Option<String> {
        match self.kind {
            TokenKind::Word => Some(self.text.to_ascii_lowercase()),
            TokenKind::Quoted => {
                let inner = self.text.get(1..self.text.len().saturating_sub(1)).unwrap_or_default();
                let quote = self.text.get(..1).unwrap_or_default();
                Some(inner.replace(&quote.repeat(2), quote).to_ascii_lowercase())
            }
            // SQLite accepts a string as a name where it cannot be a value.
            TokenKind::Text => {
                let inner = self.text.get(1..self.text.len().saturating_sub(1)).unwrap_or_default();
                Some(inner.replace("''", "'").to_ascii_lowercase())
            }
            TokenKind::Variable | TokenKind::Other => None,
        }
    }
}

/// SQLite takes it for space where a token may start, and for a letter inside of a name.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Splits SQL into tokens, without comments and space.
pub(super) fn tokens(sql: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = sql[at..].chars().next() {
        let (kind, len) = token(&sql[at..], first);
        if let Some(kind) = kind {
            found.push(Token { kind, text: &sql[at..at + len], at });
        }
        at += len;
    }
    found
}

/// Returns the kind of the first token, unless it is space or a comment, and its length.
fn token(rest: &str, first: char) -> (Option<TokenKind>, usize) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    let run = |skip: usize| {
        let tail = rest.get(skip..).unwrap_or_default();
        skip + tail.find(|c: char| !is_name(c)).unwrap_or(tail.len())
    };
    match first {
        _ if rest.starts_with("--") => (None, rest.find('\n').unwrap_or(rest.len())),
        _ if rest.starts_with("/*") => {
            (None, rest[2..].find("*/").map_or(rest.len(), |end| end + 4))
        }
        c if c.is_ascii_whitespace() => (None, 1),
        BYTE_ORDER_MARK => (None, first.len_utf8()),
        '\'' => (Some(TokenKind::Text), quoted(rest, '\'')),
        '"' | '`' => (Some(TokenKind::Quoted), quoted(rest, first)),
        '[' => (Some(TokenKind::Quoted), rest.find(']').map_or(rest.len(), |end| end + 1)),
        ':' | '@' | '#' | '$' | '?' => (Some(TokenKind::Variable), run(1)),
        c if c.is_ascii_digit() => (Some(TokenKind::Other), run(1)),
        c if is_name(c) => (Some(TokenKind::Word), run(c.len_utf8())),
        c => (Some(TokenKind::Other), c.len_utf8()),
    }
}

/// Returns the length of a quoted token; a doubled quote does not end it.
fn quoted(rest: &str, quote: char) -> usize {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    rest.len()
}

/// Returns how many copies SQLite makes of views and common table expressions, or more: a name
/// counts wherever it appears, except before the dot of a column.
pub(super) fn expansions(tokens: &[Token<'_>], views: &[&str]) -> u64 {
    let tables = table_expressions(tokens);
    let names = Names::of(&tables, views);
    let used: Vec<Option<usize>> = (0..tokens.len()).map(|at| names.used(tokens, at)).collect();
    let bodies: Vec<Vec<u64>> = tables
        .iter()
        .map(|table| names.count(used.get(table.body.clone()).unwrap_or_default()))
        .collect();
    // Each pass follows uses one step further. Without recursion through several tables, the costs
    // stand after as many passes as there are tables; a table does not count in itself.
    let mut costs = vec![1_u64; names.0.len()];
    for _ in 0..tables.len() {
        let mut next: Vec<u64> = vec![1; names.0.len()];
        for (table, body) in tables.iter().zip(&bodies) {
            let Some(own) = names.find(&table.name) else { continue };
            let inner = total(body, &costs, Some(own));
            let cost = 1_u64.saturating_add(inner).min(EXPANSIONS_MAX * 2);
            // Of several tables of one name, the largest counts.
            next[own] = next[own].max(cost);
        }
        if next == costs {
            break;
        }
        costs = next;
    }
    total(&names.count(&used), &costs, None)
}

/// The names of tables and views, each once, in order.
struct Names(Vec<String>);

impl Names {
    fn of(tables: &[TableExpression], views: &[&str]) -> Self {
        let of_tables = tables.iter().map(|table| table.name.clone());
        let mut names: Vec<String> =
            of_tables.chain(views.iter().map(|view| (*view).to_owned())).collect();
        names.sort();
        names.dedup();
        Self(names)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.0.binary_search_by(|known| known.as_str().cmp(name)).ok()
    }

    /// Returns the name that a token uses.
    fn used(&self, tokens: &[Token<'_>], at: usize) -> Option<usize> {
        let is_whole = !tokens.get(at + 1).is_some_and(|next| next.is_mark("."));
        is_whole.then(|| tokens.get(at)?.name()).flatten().and_then(|name| self.find(&name))
    }

    /// Returns how often each name is used.
    fn count(&self, used: &[Option<usize>]) -> Vec<u64> {
        let mut counts = vec![0; self.0.len()];
        for name in used.iter().flatten() {
            counts[*name] += 1;
        }
        counts
    }
}

/// Returns the sum of the costs of all uses, except those of one name.
fn total(counts: &[u64], costs: &[u64], except: Option<usize>) -> u64 {
    let each = counts.iter().zip(costs).enumerate().filter(|(name, _)| Some(*name) != except);
    each.fold(0, |sum, (_, (count, cost))| sum.saturating_add(count.saturating_mul(*cost)))
}

/// Returns how many common table expressions a query has.
pub(super) fn count_table_expressions(tokens: &[Token<'_>]) -> usize {
    table_expressions(tokens).len()
}

/// A common table expression: its name, and where its tokens are.
struct TableExpression {
    name: String,
    body: std::ops::Range<usize>,
}

/// Finds `name AS (` and `name (columns) AS (`, with MATERIALIZED or without.
fn table_expressions(tokens: &[Token<'_>]) -> Vec<TableExpression> {
    let closing = closing(tokens);
    let end = |open: usize| closing.get(open).copied().unwrap_or(tokens.len());
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let mut next = at + 1;
        if tokens.get(next).is_some_and(|token| token.is_mark("(")) {
            next = end(next) + 1;
        }
        if !tokens.get(next).is_some_and(|token| token.is("as")) {
            continue;
        }
        let Some(name) = token.name() else { continue };
        next += 1;
        // Two words at most, so that a long row of them is not read again for each.
        for _ in 0..2 {
            if tokens.get(next).is_some_and(|token| token.is("not") || token.is("materialized")) {
                next += 1;
            }
        }
        if tokens.get(next).is_some_and(|token| token.is_mark("(")) {
            found.push(TableExpression { name, body: next + 1..end(next) });
        }
    }
    found
}

/// Returns for each opening parenthesis the position of the one that closes it, or the end.
fn closing(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut closing = vec![tokens.len(); tokens.len()];
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.is_mark("(") {
            open.push(at);
        } else if token.is_mark(")")
            && let Some(opened) = open.pop()
        {
            closing[opened] = at;
        }
    }
    closing
}

/// Returns whether an operator of the query may fail for some values: `||` makes texts that may
/// become too long; a pattern may be too long, unless `is_short` knows that variable; a limit or a
/// frame from a column may not be a number. Functions are the authorizer's.
pub(super) fn may_fail(tokens: &[Token<'_>], is_short: impl Fn(&str) -> bool) -> bool {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        let after = |n: usize| tokens.get(at + n);
        let is_next = |mark| after(1).is_some_and(|next| next.is_mark(mark));
        let has_constant_pattern = after(1).is_some_and(|next| match next.kind {
            TokenKind::Text => next.text.len() <= PATTERN_BYTES_MAX,
            TokenKind::Variable => is_short(next.text),
            TokenKind::Word | TokenKind::Quoted | TokenKind::Other => false,
        });
        let has_constant_count = after(1).is_some_and(|next| {
            next.kind == TokenKind::Other && next.text.bytes().all(|byte| byte.is_ascii_digit())
        }) && after(2)
            .is_some_and(|end| end.is_mark(")") || end.is("offset"));
        if token.is_mark("(") {
            depth += 1;
        } else if token.is_mark(")") {
            depth = depth.saturating_sub(1);
        }
        let fails = (token.is_mark("|") && is_next("|"))
            || (token.is_mark("-") && is_next(">"))
            || ((token.is("like") || token.is("glob")) && !has_constant_pattern)
            || ((token.is("limit") || token.is("offset")) && depth > 0 && !has_constant_count)
            || ["escape", "preceding", "following"].iter().any(|word| token.is(word));
        if fails {
            return true;
        }
    }
    false
}

/// Returns whether a name is in a query.
pub(super) fn names(tokens: &[Token<'_>], name: &str) -> bool {
    tokens.iter().any(|token| token.name().is_some_and(|found| found == name))
}

/// Returns whether a query selects more than once.
pub(super) fn is_nested(tokens: &[Token<'_>]) -> bool {
    tokens.iter().filter(|token| token.is("select") || token.is("values")).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<&str> {
        tokens(sql).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn strings_names_and_comments_are_one_token_or_none() {
        let sql = "SELECT 'it''s -- no', \"a\"\"b\", [c d], `e` /* x */ , :v -- end\n FROM t;";
        let expected =
            ["SELECT", "'it''s -- no'", ",", "\"a\"\"b\"", ",", "[c d]", ",", "`e`", ",", ":v"];
        assert_eq!(texts(sql)[..10], expected);
        assert_eq!(texts(sql)[10..], ["FROM", "t", ";"]);
        for open in ["'open", "\"open", "[open", "/* open", "-- open", "é'é"] {
            assert!(tokens(open).iter().map(|token| token.text.len()).sum::<usize>() <= open.len());
        }
    }

    /// Rule: SQLite copies a common table expression at each use, without a way to stop it.
    #[test]
    fn tables_that_use_each_other_are_counted_as_often_as_they_are_copied() {
        let count = |sql: &str| expansions(&tokens(sql), &["artifacts", "sources"]);
        assert_eq!(count("SELECT * FROM artifacts"), 1);
        let lineage = "WITH RECURSIVE up (id) AS (SELECT :id UNION SELECT source_id FROM sources \
                       JOIN up ON artifact_id = up.id) SELECT * FROM up";
        assert!(count(lineage) <= 10, "{}", count(lineage));
        let mut bomb = "WITH t0 AS (SELECT 1)".to_owned();
        for n in 1..20 {
            bomb.push_str(&format!(
                ", t{n} AS NOT MATERIALIZED (SELECT * FROM t{0}, \"T{0}\")",
                n - 1
            ));
        }
        assert!(count(&format!("{bomb} SELECT * FROM t19")) > EXPANSIONS_MAX);
        let hidden = bomb.replace(" AS NOT MATERIALIZED (", "/**/(a, b) aS materialized /*(*/(");
        assert!(count(&format!("{hidden} SELECT * FROM 't19'")) > EXPANSIONS_MAX);
    }

    /// Rule: what SQLite takes for space hides nothing.
    #[test]
    fn a_byte_order_mark_before_a_token_is_space() {
        assert_eq!(texts("\u{feff}SELECT \u{feff}a\u{feff}b"), ["SELECT", "a\u{feff}b"]);
    }

    /// Rule: the text is read before the time of a query starts, so this must be quick.
    #[test]
    fn many_tables_are_counted_without_comparing_each_with_each() {
        let many: Vec<String> = (0..1600).map(|n| format!("t{n} as(t{})", n + 1)).collect();
        let sql = format!("with {} select", many.join(","));
        assert!(count_table_expressions(&tokens(&sql)) > TABLES_MAX);
        let open = "a(".repeat(8000);
        assert_eq!(count_table_expressions(&tokens(&open)), 0);
    }

    #[test]
    fn only_operators_that_cannot_fail_run_on_hidden_rows() {
        let fails = |sql: &str| may_fail(&tokens(sql), |variable| variable == ":p");
        let nested = "(SELECT 1 LIMIT 5) LIMIT a";
        for safe in ["a LIKE 'x%'", "a NOT LIKE :p", "'||' = a", "a -- || b\n", nested] {
            assert!(!fails(safe), "{safe}");
        }
        let long = format!("a LIKE '{}'", "x".repeat(PATTERN_BYTES_MAX));
        assert!(fails(&long));
        for unsafe_one in [
            "(SELECT 1 LIMIT a)",
            "(SELECT 1 LIMIT 1 OFFSET 1 + a)",
            "a || b",
            "a LIKE b",
            "a GLOB (b)",
            "a LIKE 'x' ESCAPE b",
            "a->'$.b'",
            "a LIKE :q",
        ] {
            assert!(fails(unsafe_one), "{unsafe_one}");
        }
    }
}
