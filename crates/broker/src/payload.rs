//! Payloads that pass through: validated on a decoded copy, translated only where the two ends use
//! different encodings, and otherwise the same bytes.

use std::io;
use std::sync::OnceLock;

use bytes::Bytes;
use jsonschema::Validator;
use ringback_proto::any::{Any, Format};
use ringback_proto::value::Value;
use ringback_proto::{Error, Result, ToolRequest};

/// Larger inputs are not checked against a schema: decoding would cost several times their size.
const CHECKED_BYTES_MAX: usize = 1 << 20;
/// A schema larger than this is a mistake.
const SCHEMA_BYTES_MAX: usize = 256 << 10;
/// The longest part of a validator's message that is passed on.
const MISFIT_CHARS_MAX: usize = 300;

/// Returns the payload in the wanted encoding; the same bytes if it has that encoding already.
pub(crate) fn translate(payload: Any, wanted: Format) -> Result<Any> {
    payload.translate(wanted).map_err(|error| Error::invalid(error.to_string()))
}

/// Reads the request of a native tool from a JSON object; `None` if there is no such tool. All edges
/// use it, so that the program has one decoder of all requests in JSON.
///
/// # Errors
/// When the text is not JSON, or its fields do not match.
#[must_use]
pub fn request_from_json(name: &str, text: &[u8]) -> Option<serde_json::Result<ToolRequest>> {
    let mut decoder = serde_json::Deserializer::from_slice(text);
    let request = ToolRequest::deserialize_named(name, &mut decoder)?;
    Some(request.and_then(|request| decoder.end().map(|()| request)))
}

/// Writes a request as JSON, for payloads with values that MsgPack cannot represent.
///
/// # Panics
/// When it cannot be written as JSON either, which no request that came in can cause.
pub(crate) fn write_json(writer: impl io::Write, request: &ToolRequest) {
    serde_json::to_writer(writer, request)
        .expect("a request that MsgPack cannot represent came as JSON");
}

fn untranslatable(error: &dyn std::error::Error) -> Error {
    let text: String = error.to_string().chars().take(MISFIT_CHARS_MAX).collect();
    Error::invalid(format!("the payload cannot be translated: {text}"))
}

/// Adds `"type": "object"` to a schema; a schema with any type stays unchanged.
pub(crate) fn typed_as_object(schema: Any) -> Result<Any> {
    let schema = translate(schema, Format::Json)?;
    let text = schema.bytes.trim_ascii();
    let view: Option<serde_json::Value> = serde_json::from_slice(text).ok();
    let fields = view.as_ref().and_then(serde_json::Value::as_object);
    if fields.is_none_or(|fields| fields.contains_key("type")) {
        return Ok(schema);
    }
    let Some(rest) = text.strip_prefix(b"{") else { return Ok(schema) };
    let is_bare = rest.trim_ascii_start() == b"}";
    let start: &[u8] = if is_bare { br#"{"type":"object""# } else { br#"{"type":"object","# };
    Ok(Any { format: Format::Json, bytes: [start, rest].concat().into() })
}

/// The schema of a tool's input, as its party sent it.
#[derive(Debug)]
pub(crate) struct InputSchema {
    json: Bytes,
    /// Compiled at the first call: most tools of a large offer are never called.
    validator: OnceLock<Option<Validator>>,
}

impl InputSchema {
    /// Accepts a schema that describes an object. No schema allows any object.
    pub(crate) fn read(schema: Option<Any>) -> Result<Self> {
        let Some(schema) = schema else {
            return Ok(Self {
                json: Bytes::from_static(br#"{"type":"object"}"#),
                validator: OnceLock::from(None),
            });
        };
        if schema.bytes.len() > SCHEMA_BYTES_MAX {
            let message = format!("a schema can have at most {} KiB", SCHEMA_BYTES_MAX >> 10);
            return Err(Error::new(ringback_proto::ErrorKind::TooLarge, message));
        }
        let json = translate(schema, Format::Json)?.bytes;
        let view: serde_json::Value = serde_json::from_slice(&json)
            .map_err(|error| bad_schema(&format!("it is not JSON: {error}")))?;
        let Some(fields) = view.as_object() else {
            return Err(bad_schema("it must be a JSON object"));
        };
        if fields.get("type").is_some_and(|kind| kind != "object") {
            return Err(bad_schema("its type must be `object`"));
        }
        if let Err(error) = jsonschema::meta::validate(&view) {
            return Err(bad_schema(&error.to_string()));
        }
        let allows_all =
            fields.keys().all(|key| matches!(&**key, "type" | "description" | "$schema"));
        let validator = if allows_all { OnceLock::from(None) } else { OnceLock::new() };
        Ok(Self { json, validator })
    }

    /// Returns the schema as JSON, unchanged.
    pub(crate) const fn json(&self) -> &Bytes {
        &self.json
    }

    /// Returns the schema as a value.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.json).expect("the schema was parsed when it was offered")
    }

    /// Checks an input against the schema. The input itself is not changed.
    pub(crate) fn check(&self, input: &Any) -> Result<()> {
        if input.bytes.len() > CHECKED_BYTES_MAX {
            return Ok(());
        }
        let validator = self.validator.get_or_init(|| {
            let view = serde_json::from_slice(&self.json).ok()?;
            jsonschema::validator_for(&view).ok()
        });
        let Some(validator) = validator else { return is_object(input) };
        let view: serde_json::Value = match input.format {
            Format::Json => serde_json::from_slice(&input.bytes).map_err(|e| untranslatable(&e))?,
            Format::MsgPack => {
                let value: Value =
                    rmp_serde::from_slice(&input.bytes).map_err(|error| untranslatable(&error))?;
                serde_json::to_value(&value).map_err(|error| untranslatable(&error))?
            }
        };
        validator.validate(&view).map_err(|error| {
            let place = error.instance_path().to_string();
            let said: String = error.to_string().chars().take(MISFIT_CHARS_MAX).collect();
            let place =
                if place.is_empty() { "the input".to_owned() } else { format!("`{place}`") };
            Error::invalid(format!("{place} does not match the tool's schema: {said}"))
        })
    }
}

fn bad_schema(why: &str) -> Error {
    let why: String = why.chars().take(MISFIT_CHARS_MAX).collect();
    Error::invalid_field("parameters", format!("the input schema is invalid: {why}"))
}

fn is_object(input: &Any) -> Result<()> {
    let first = match input.format {
        Format::Json => input.bytes.trim_ascii_start().first() == Some(&b'{'),
        Format::MsgPack => {
            matches!(input.bytes.first(), Some(0x80..=0x8f | 0xde | 0xdf))
        }
    };
    if first { Ok(()) } else { Err(Error::invalid("the input must be an object")) }
}

#[cfg(test)]
mod tests {
    use ringback_proto::ErrorKind;

    use super::*;

    fn json(text: &str) -> Any {
        Any { format: Format::Json, bytes: Bytes::copy_from_slice(text.as_bytes()) }
    }

    /// What can be translated is a test of `Any`.
    #[test]
    fn a_payload_that_the_other_encoding_cannot_represent_is_invalid() {
        let refused = translate(json("123456789012345678901"), Format::MsgPack);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn an_input_must_fit_its_schema_in_either_encoding() {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}"#;
        let schema = InputSchema::read(Some(json(schema))).unwrap();
        for (text, fits) in [(r#"{"n":1,"more":null}"#, true), (r#"{"n":0}"#, false), ("{}", false)]
        {
            assert_eq!(schema.check(&json(text)).is_ok(), fits, "{text}");
            let packed = translate(json(text), Format::MsgPack).unwrap();
            assert_eq!(schema.check(&packed).is_ok(), fits, "{text}");
        }
        let misfit = schema.check(&json(r#"{"n":0}"#)).unwrap_err();
        assert!(misfit.message().contains("/n"), "{misfit}");
        let any = InputSchema::read(None).unwrap();
        assert!(any.check(&json("[]")).is_err());
        assert!(any.check(&json(" {}")).is_ok());
    }

    #[test]
    fn a_schema_without_a_type_is_of_an_object_and_otherwise_unchanged() {
        let cases = [
            ("{}", r#"{"type":"object"}"#),
            (" { } ", r#"{"type":"object" }"#),
            (
                r#"{"z": 1e3,"a":9007199254740993}"#,
                r#"{"type":"object","z": 1e3,"a":9007199254740993}"#,
            ),
            (r#"{"a":{"type":"string"}}"#, r#"{"type":"object","a":{"type":"string"}}"#),
            (r#"{ "type" : "object" }"#, r#"{ "type" : "object" }"#),
            (r#"{"type":"string"}"#, r#"{"type":"string"}"#),
            (r#"{"type":null}"#, r#"{"type":null}"#),
            ("[]", "[]"),
            ("{", "{"),
        ];
        for (text, expected) in cases {
            assert_eq!(typed_as_object(json(text)).unwrap().bytes, expected, "{text}");
        }
    }

    /// Rule: a schema never makes the daemon fetch anything, whatever it refers to.
    #[test]
    fn a_schema_that_points_elsewhere_fetches_nothing() {
        let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        elsewhere.set_nonblocking(true).unwrap();
        let url = format!("http://{}/x.json", elsewhere.local_addr().unwrap());
        for schema in [
            format!(r#"{{"properties":{{"a":{{"$ref":"{url}"}}}}}}"#),
            format!(r#"{{"properties":{{"a":{{"$ref":"{url}#/definitions/a"}}}}}}"#),
            format!(r#"{{"$ref":"{url}","properties":{{"a":{{}}}}}}"#),
            format!(r#"{{"$schema":"{url}","properties":{{"a":{{"type":"integer"}}}}}}"#),
            format!(r#"{{"$id":"{url}","properties":{{"a":{{"$ref":"y.json"}}}}}}"#),
            format!(r#"{{"properties":{{"a":{{"$dynamicRef":"{url}#a"}}}}}}"#),
            r#"{"properties":{"a":{"$ref":"file:///etc/hostname"}}}"#.to_owned(),
        ] {
            // Whether it is refused or allows anything: nothing that it refers to is fetched.
            if let Ok(read) = InputSchema::read(Some(json(&schema))) {
                drop(read.check(&json(r#"{"a":1}"#)));
            }
            let error = elsewhere.accept().expect_err(&schema);
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{schema}");
        }
        // A connection would be visible.
        let asking = std::net::TcpStream::connect(elsewhere.local_addr().unwrap()).unwrap();
        elsewhere.set_nonblocking(false).unwrap();
        assert_eq!(elsewhere.accept().unwrap().1, asking.local_addr().unwrap());
    }

    /// Rule: a schema is compiled once, at the first input that is checked.
    #[test]
    fn a_schema_is_compiled_once() {
        let schema = r#"{"properties":{"n":{"type":"integer"}}}"#;
        let schema = InputSchema::read(Some(json(schema))).unwrap();
        assert!(schema.validator.get().is_none(), "not before it is needed");
        let compiled = |n: u32| {
            schema.check(&json(&format!(r#"{{"n":{n}}}"#))).unwrap();
            assert!(schema.check(&json(r#"{"n":"no"}"#)).is_err());
            let validator = schema.validator.get().and_then(Option::as_ref);
            std::ptr::from_ref(validator.unwrap())
        };
        let first = compiled(1);
        assert!((2..100).all(|n| compiled(n) == first));
    }

    #[test]
    fn schemas_that_are_none_are_refused() {
        for bad in
            ["[]", "true", r#"{"type":"string"}"#, r#"{"type":"object","properties":7}"#, "{"]
        {
            let refused = InputSchema::read(Some(json(bad)));
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid, "{bad}");
        }
    }
}
