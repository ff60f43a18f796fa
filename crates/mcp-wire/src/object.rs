//! A JSON object whose values stay unparsed.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Below this, comparing each name is quicker than a table.
const FEW: usize = 16;

/// The fields of an object in their order, each value as its own JSON text.
#[derive(Debug, Clone, Default)]
pub struct Object<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// JSON that is not an object, or not JSON.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotAnObject(#[from] serde_json::Error);

/// A name that borrows from the text where it can.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct ObjectVisitor;

impl<'a> Object<'a> {
    /// Reads an object from its text.
    ///
    /// # Errors
    /// When it is not an object, or has a duplicate name.
    pub fn parse(json: &'a [u8]) -> Result<Self, NotAnObject> {
        Ok(serde_json::from_slice(json)?)
    }

    /// Reads an object from a value.
    ///
    /// # Errors
    /// When it is not an object, or has a duplicate name.
    pub fn of(raw: &'a RawValue) -> Result<Self, NotAnObject> {
        Self::parse(raw.get().as_bytes())
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| *value)
    }

    /// The value of a string field.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        let Name(text) = serde_json::from_str(self.get(name)?.get()).ok()?;
        Some(text)
    }

    /// Every field in its order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.fields.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// Whether it has no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Replaces the name and the value of each field.
    #[must_use]
    pub fn map(
        self,
        mut change: impl FnMut(Cow<'a, str>, &'a RawValue) -> (Cow<'a, str>, &'a RawValue),
    ) -> Self {
        Self { fields: self.fields.into_iter().map(|(name, value)| change(name, value)).collect() }
    }

    /// Removes a field.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(field, _)| field != name);
        self
    }

    fn has_name_twice(&self) -> bool {
        let names = self.fields.iter().map(|(name, _)| name.as_ref());
        if self.fields.len() <= FEW {
            let mut rest = names.clone();
            return names.into_iter().any(|name| {
                rest.next();
                rest.clone().any(|other| other == name)
            });
        }
        let mut seen = HashSet::with_capacity(self.fields.len());
        !names.into_iter().all(|name| seen.insert(name))
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Object<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some((Name(name), value)) = entries.next_entry()? {
            fields.push((name, value));
        }
        let object = Object { fields };
        if object.has_name_twice() {
            return Err(de::Error::custom("the object has a duplicate name"));
        }
        Ok(object)
    }
}

#[cfg(test)]
mod tests {
    use super::Object;

    #[test]
    fn values_and_their_order_are_kept() {
        let text = r#"{"z":12345678901234567890,"a":{"x":null},"\u006d":1e2}"#;
        let object = Object::parse(text.as_bytes()).unwrap();
        assert_eq!(object.get("m").unwrap().get(), "1e2");
        let names: Vec<_> = object.fields().map(|(name, _)| name).collect();
        assert_eq!(names, ["z", "a", "m"]);
        let expected = r#"{"z":12345678901234567890,"a":{"x":null},"m":1e2}"#;
        assert_eq!(serde_json::to_string(&object).unwrap(), expected);
    }

    /// Rule: JSON that two readers could read differently is refused.
    #[test]
    fn a_name_that_comes_twice_is_refused() {
        assert!(Object::parse(br#"{"a":1,"a":2}"#).is_err());
        assert!(Object::parse(br#"{"a":1,"\u0061":2}"#).is_err());
        let many: Vec<_> = (0..40).map(|n| format!("\"n{}\":{n}", n % 39)).collect();
        assert!(Object::parse(format!("{{{}}}", many.join(",")).as_bytes()).is_err());
        assert!(Object::parse(b"[]").is_err());
    }
}
