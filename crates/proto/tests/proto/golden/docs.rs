//! The page `docs/tools.md`, generated from the tool table.

use std::fmt::Write as _;

use serde_json::Value;

use crate::samples::SampleRow;

const OPENING: &str = "\
# The tools

Generated from the tool table by `cargo xtask golden`; do not edit. The JSON Schemas are in
`schemas/tools/`, sample bytes to compare with in `schemas/golden/`.

*Timing*: `sync` answers immediately. `async_short` and `async_medium` answer with the result if it is
ready within 30 or 120 seconds, otherwise with the job's id. `async_long` answers with the job's id.
`fire_and_forget` answers once the command is accepted. *Job*: whether a call creates a job record.
*Scope*: the minimum scope of the token; `write` includes `read`, `admin` includes everything.

In a map, a field marked `?` may be absent or null. In an array, the fields are in the order listed
here; an absent field is nil unless no field follows it. Times are milliseconds since the Unix epoch.

| tool | timing | job | scope | |
|---|---|---|---|---|
";

/// Returns the whole page.
pub(crate) fn tools_page(rows: &[SampleRow]) -> String {
    let mut page = OPENING.to_owned();
    for SampleRow { row, .. } in rows {
        writeln!(
            page,
            "| [`{name}`](#{name}) | `{}` | {} | `{}` | {} |",
            row.timing.as_str(),
            if row.makes_job { "yes" } else { "no" },
            row.level,
            row.description,
            name = row.name,
        )
        .expect("writing to a String cannot fail");
    }
    rows.iter().for_each(|row| tool(&mut page, row));
    page
}

fn tool(page: &mut String, sample: &SampleRow) {
    let row = sample.row;
    let timing = row.timing.as_str();
    let job = if row.makes_job { "creates a job" } else { "creates no job" };
    write!(
        page,
        "\n## `{}`\n\n{}\n\nTiming `{timing}`, {job}, scope `{}`.\n",
        row.name, row.description, row.level
    )
    .expect("writing to a String cannot fail");
    fields(page, "Input", sample.request_fields, &(row.request_schema)());
    let gives = format!("Output `{}`", sample.responses[0].type_name());
    fields(page, &gives, sample.response_fields, &(row.response_schema)());
}

fn fields(page: &mut String, title: &str, names: &[&str], schema: &schemars::Schema) {
    if names.is_empty() {
        writeln!(page, "\n{title}: none.").expect("writing to a String cannot fail");
        return;
    }
    let schema = serde_json::to_value(schema).expect("a schema is JSON");
    writeln!(page, "\n{title}:\n\n| field | type | |\n|---|---|---|")
        .expect("writing to a String cannot fail");
    for name in names {
        let property = &schema["properties"][name];
        let about = property["description"].as_str().unwrap_or_default().replace('\n', " ");
        let mark = if is_required(&schema, name) { "" } else { "?" };
        writeln!(page, "| `{name}{mark}` | {} | {about} |", type_of(property))
            .expect("writing to a String cannot fail");
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name))
}

/// Describes a schema in a few words. Null is left out: the mark of optional fields covers it.
fn type_of(schema: &Value) -> String {
    if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        return choices
            .iter()
            .filter(|it| it["type"] != "null")
            .map(type_of)
            .collect::<Vec<_>>()
            .join(" or ");
    }
    if let Some(value) = schema.get("const").and_then(Value::as_str) {
        return format!("`{value}`");
    }
    if let Some(values) = schema["enum"].as_array() {
        let names = values.iter().filter_map(Value::as_str).map(|name| format!("`{name}`"));
        return names.collect::<Vec<_>>().join(" or ");
    }
    match plain_type(schema) {
        Some("array") => format!("list of {}", type_of(&schema["items"])),
        Some("object") => object_type(schema),
        Some("integer" | "number") => {
            schema["format"].as_str().map_or("number", format_name).to_owned()
        }
        Some("string") if schema["contentEncoding"] == "base64" => "bytes".to_owned(),
        Some("string") => match schema["pattern"].as_str() {
            Some(pattern) => format!("`{}`", pattern.trim_matches(['^', '$'])),
            None => "text".to_owned(),
        },
        Some("boolean") => "true or false".to_owned(),
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

/// Returns the only type besides null.
fn plain_type(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(name) => Some(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn object_type(schema: &Value) -> String {
    let Some(properties) = schema["properties"].as_object() else { return "map".to_owned() };
    let mut names: Vec<_> = properties
        .keys()
        .map(|name| format!("`{name}{}`", if is_required(schema, name) { "" } else { "?" }))
        .collect();
    names.sort();
    format!("map of {}", names.join(", "))
}

fn format_name(format: &str) -> &str {
    match format {
        "uint64" => "u64",
        "uint32" => "u32",
        "uint8" => "u8",
        "float" => "f32",
        "double" => "f64",
        other => other,
    }
}
