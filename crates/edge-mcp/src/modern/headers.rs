//! The headers of a modern request must match its body: a proxy that routes by them must not be
//! misled.

use std::borrow::Cow;

use axum::http::HeaderMap;
use ringback_mcp_wire::{Code, Era, Fault, Meta, Request, Version, header};

use crate::post::PROTOCOL_VERSION;

const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Checks the headers that every modern request carries.
pub(super) fn check(
    request: &Request<'_>,
    meta: &Meta<'_>,
    headers: &HeaderMap,
) -> Result<(), Fault> {
    let Some(version) = meta.protocol_version() else {
        return Err(Fault::invalid_params("`_meta` must have a protocolVersion"));
    };
    if meta.client_capabilities().is_none() {
        return Err(Fault::invalid_params("`_meta` must have clientCapabilities, an object"));
    }
    same(headers, PROTOCOL_VERSION, &version)?;
    if Version::parse(&version).is_none_or(|version| version.era() == Era::Legacy) {
        return Err(Fault::unsupported_version(&version));
    }
    same(headers, METHOD, &request.method)?;
    match named(request) {
        Some(name) => same(headers, NAME, &name),
        None => Ok(()),
    }
}

/// The target of the request, where its method has one.
fn named<'a>(request: &Request<'a>) -> Option<Cow<'a, str>> {
    match request.method.as_ref() {
        "tools/call" | "prompts/get" => request.params.text("name"),
        "resources/read" => request.params.text("uri"),
        _ => None,
    }
}

fn same(headers: &HeaderMap, name: &str, body: &str) -> Result<(), Fault> {
    let mismatch =
        |what: &str| Err(Fault::new(Code::HeaderMismatch, format!("the header `{name}` {what}")));
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return mismatch("is missing") };
    if values.next().is_some() {
        return mismatch("is sent twice");
    }
    match value.to_str().ok().and_then(header::decode) {
        None => mismatch("cannot be read"),
        Some(value) if value == body => Ok(()),
        Some(_) => mismatch("does not match the body"),
    }
}
