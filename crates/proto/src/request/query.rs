//! Queries.

use std::collections::BTreeMap;

use super::wire_struct;
use crate::value::Value;

wire_struct! {
    /// A query over what you may see.
    GraphQueryRequest {
        /// One SELECT in the SQL of SQLite, over the views that `SELECT * FROM help` lists.
        query: String,
        /// The values of its variables. A variable is written `:name` in the query.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variables: Option<BTreeMap<String, Value>>,
        /// The most rows to return: at most 1000, default 100.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
    }

    /// The rows that a query found.
    GraphQueryResponse {
        /// The rows: each maps the names of the columns to values.
        #[schemars(with = "Vec<BTreeMap<String, Value>>")]
        results: Vec<Value>,
        /// The number of rows here.
        count: u64,
        /// Whether there are more: over the limit, or more than 256 KiB.
        truncated: bool,
    }
}
