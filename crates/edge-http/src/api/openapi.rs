//! The table of routes as an OpenAPI 3.1 document. Its schemas come from the types.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::Route;
use super::operation::{Answer, Auth, Content, Operation, SchemaFn};
use crate::error::ErrorBody;

const ABOUT: &str = "Call tools, follow jobs, store and read content, offer your own tools. \
    Every error says whether the tool ran.";

/// What each error status means; the codes are in the body.
const ERRORS: &[(u16, &str)] = &[
    (400, "The request is invalid: `INVALID_REQUEST`."),
    (401, "The token is missing or invalid: `UNAUTHENTICATED`."),
    (403, "The token may not do this, or the page's Origin is not allowed: `FORBIDDEN`."),
    (404, "Not found, or not visible to you: `NOT_FOUND`."),
    (405, "The path does not support the method: `METHOD_NOT_ALLOWED`."),
    (408, "The body stalled: `REQUEST_TIMEOUT`."),
    (409, "The name or id is in use, or was used for something else: `CONFLICT`."),
    (413, "The body is too large: `TOO_LARGE`."),
    (415, "The body has the wrong type: `UNSUPPORTED_MEDIA_TYPE`."),
    (416, "The range starts past the end: `RANGE_NOT_SATISFIABLE`."),
    (421, "The daemon does not serve this Host: `FORBIDDEN`."),
    (429, "Too many requests in a period: `RATE_LIMITED`."),
    (499, "The call was cancelled: `CANCELLED`."),
    (500, "An error in the daemon: `INTERNAL_ERROR`."),
    (502, "The tool ran and failed: `TOOL_ERROR`."),
    (503, "The daemon is full, or the tool's client is gone: `BUSY`, `CLIENT_GONE`."),
    (504, "The call timed out: `TIMEOUT`."),
];

/// Descriptions of path parameters.
const PATH_PARTS: &[(&str, &str)] = &[
    ("artifact_id", "An artifact's id, `art_…`."),
    ("client_id", "The name a client chose for itself."),
    ("hash", "The BLAKE3 hash of the content, 64 hex digits."),
    ("job_id", "A job's id, `job_…`."),
    ("name", "A tool's full name."),
    ("session_id", "A session's id, `gogol_…`."),
    ("token_id", "A token's public id, `tok_…`."),
];

/// Builds the document of these routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .into_generator();
    let mut paths = Map::new();
    for route in routes {
        let operations = paths.entry(route.path).or_insert_with(|| json!({}));
        operations[route.method] = operation(&mut generator, route.path, &route.operation);
    }
    let error_schema = generator.subschema_for::<ErrorBody>().to_value();
    let errors: Map<_, _> = ERRORS
        .iter()
        .map(|(status, about)| (error_name(*status), error(*status, about, &error_schema)))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ringback",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "ticket": { "type": "apiKey", "in": "query", "name": "ticket" },
            },
            "responses": errors,
            "schemas": generator.take_definitions(true),
        },
    })
}

fn operation(generator: &mut SchemaGenerator, path: &str, operation: &Operation) -> Value {
    let mut parameters: Vec<Value> = path_parts(path).map(path_parameter).collect();
    parameters.extend(operation.query.iter().flat_map(|query| query_parameters(*query)));
    parameters.extend(operation.headers.iter().map(|(name, about)| {
        json!({ "name": name, "in": "header", "description": about, "schema": { "type": "string" } })
    }));
    let mut responses = Map::new();
    for answered in &operation.answers {
        responses.insert(answered.status.to_string(), answer(generator, answered));
    }
    for status in &operation.fails {
        let name = error_name(*status);
        let reference = json!({ "$ref": format!("#/components/responses/{name}") });
        responses.entry(status.to_string()).or_insert(reference);
    }
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.about,
        "security": security(operation.auth),
        "responses": responses,
    });
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some((body, required)) = &operation.body {
        let body = content(generator, std::slice::from_ref(body));
        described["requestBody"] = json!({ "required": required, "content": body });
    }
    described
}

fn security(auth: Auth) -> Value {
    match auth {
        Auth::Nobody => json!([]),
        Auth::Token => json!([{ "token": [] }]),
        Auth::TokenOrTicket => json!([{ "token": [] }, { "ticket": [] }]),
    }
}

fn answer(generator: &mut SchemaGenerator, answer: &Answer) -> Value {
    let mut described = json!({ "description": answer.about });
    let content = content(generator, &answer.content);
    if !content.is_empty() {
        described["content"] = content.into();
    }
    for (name, about) in &answer.headers {
        described["headers"][*name] =
            json!({ "description": about, "schema": { "type": "string" } });
    }
    described
}

fn content(generator: &mut SchemaGenerator, contents: &[Content]) -> Map<String, Value> {
    let mut described = Map::new();
    for content in contents {
        let (kind, schema) = match content {
            Content::Nothing => continue,
            Content::Json(schema_of) => ("application/json", schema_of(generator).to_value()),
            Content::Events(about) => {
                ("text/event-stream", json!({ "type": "string", "description": about }))
            }
            Content::Bytes => ("*/*", json!({})),
            Content::Media(kind) => (*kind, json!({})),
            Content::Text(kind) => (*kind, json!({ "type": "string" })),
        };
        described.insert(kind.to_owned(), json!({ "schema": schema }));
    }
    described
}

/// The names between braces.
fn path_parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> Value {
    let about = PATH_PARTS.iter().find(|(known, _)| *known == name).map(|(_, about)| *about);
    let about = about.expect("every path parameter is described; a test walks the table");
    json!({
        "name": name, "in": "path", "required": true, "description": about,
        "schema": { "type": "string", "minLength": 1 },
    })
}

/// Makes each field of the type a parameter.
fn query_parameters(schema_of: SchemaFn) -> Vec<Value> {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let mut schema = schema_of(&mut generator).to_value();
    let required = schema["required"].take();
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.contains(&name.into()));
    let Value::Object(properties) = schema["properties"].take() else { return Vec::new() };
    properties
        .into_iter()
        .map(|(name, field)| query_parameter(&name, field, is_required(&name)))
        .collect()
}

fn query_parameter(name: &str, mut field: Value, required: bool) -> Value {
    let about = field["description"].take();
    if let Value::Object(fields) = &mut field {
        fields.remove("description");
        fields.remove("default");
        // An absent query parameter is simply missing: a query cannot express null.
        if let Some(Value::Array(types)) = fields.get_mut("type") {
            types.retain(|kind| kind != "null");
        }
        if let Some(Value::Array(options)) = fields.get_mut("anyOf") {
            options.retain(|option| option["type"] != "null");
        }
    }
    json!({ "name": name, "in": "query", "required": required, "description": about, "schema": field })
}

fn error_name(status: u16) -> String {
    format!("Error{status}")
}

fn error(status: u16, about: &str, schema: &Value) -> Value {
    let mut described = json!({
        "description": about,
        "content": { "application/json": { "schema": schema } },
    });
    let header = match status {
        401 => Some(("WWW-Authenticate", "Always `Bearer`.")),
        405 => Some(("Allow", "The methods that the path supports.")),
        416 => Some(("Content-Range", "The length of the content in bytes.")),
        429 | 503 | 504 => Some(("Retry-After", "The number of seconds to wait before a retry.")),
        _ => None,
    };
    if let Some((name, about)) = header {
        described["headers"][name] =
            json!({ "description": about, "schema": { "type": "string" } });
    }
    described
}
