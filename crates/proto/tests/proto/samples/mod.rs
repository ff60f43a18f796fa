//! A sample request and response for every row of the tool table, with awkward values. A row whose
//! types have no [`Sample`] does not compile.

mod values;

pub(crate) use self::values::garden;
use ringback_proto::tool::{ToolRow, tools};
use ringback_proto::value::Value;
use ringback_proto::{Tool, ToolRequest, ToolResponse};
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, Visitor};

/// Two values of a wire type.
pub(crate) trait Sample: Sized {
    /// Without optional fields, and with empty lists.
    fn least() -> Self;

    /// With all fields set, including those of nested types.
    fn full() -> Self {
        Self::least()
    }
}

/// A row of the tool table with its samples.
pub(crate) struct SampleRow {
    /// The row itself.
    pub(crate) row: &'static ToolRow,
    /// The least request, then the full one.
    pub(crate) requests: [ToolRequest; 2],
    /// The names of the request's fields, in the order of positional arrays.
    pub(crate) request_fields: &'static [&'static str],
    /// The least response, then the full one.
    pub(crate) responses: [ToolResponse; 2],
    /// The names of the response's fields, in the order of positional arrays.
    pub(crate) response_fields: &'static [&'static str],
}

/// The names of the two samples of a type.
pub(crate) const LABELS: [&str; 2] = ["least", "full"];

/// Every row of the table.
pub(crate) fn rows() -> Vec<SampleRow> {
    macro_rules! collect {
        ($($variant:ident($request:ident) -> $response:ident { $($rest:tt)* })*) => {
            vec![$(sample_row::<tools::$variant>(),)*]
        };
    }
    ringback_proto::tool_table!(collect)
}

fn sample_row<T: Tool>() -> SampleRow
where
    T::Request: Sample,
    T::Response: Sample,
{
    SampleRow {
        row: T::ROW,
        requests: [T::Request::least().into(), T::Request::full().into()],
        request_fields: field_names::<T::Request>(),
        responses: [T::Response::least().into(), T::Response::full().into()],
        response_fields: field_names::<T::Response>(),
    }
}

/// Returns the fields of a struct as its derived decoder names them, in order of declaration.
fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    match <T as Deserialize>::deserialize(FieldProbe) {
        Ok(_) => &[],
        Err(FieldNames(names)) => names,
    }
}

/// A deserializer without content that captures the requested fields.
struct FieldProbe;

#[derive(Debug, thiserror::Error)]
#[error("the fields are {0:?}")]
struct FieldNames(&'static [&'static str]);

impl de::Error for FieldNames {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for FieldProbe {
    type Error = FieldNames;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, FieldNames> {
        Err(FieldNames(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, FieldNames> {
        Err(FieldNames(fields))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Encodes the same message without the names of its fields: the tag, then each field or nil.
pub(crate) fn positional(tag: &str, fields: &[&str], named: &[u8]) -> Vec<u8> {
    let map: Value = rmp_serde::from_slice(named).expect("a named map");
    let values = fields.iter().map(|field| map.get(field).cloned().unwrap_or_default());
    let items = std::iter::once(Value::Text(tag.to_owned())).chain(values).collect();
    rmp_serde::to_vec(&Value::List(items)).expect("values can be encoded")
}
