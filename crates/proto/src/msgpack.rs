//! Scans MsgPack without decoding it: checks that it is well-formed and within limits, and finds its
//! top-level fields. Runs before any decoder, so that no decoder meets hostile nesting or sizes.

use rmp::Marker;

/// Deeper than any of our messages, shallow enough for any decoder's stack.
pub const DEPTH_MAX: usize = 64;
/// More values than any of our messages: limits the work, not the bytes.
pub const ITEMS_MAX: usize = 1 << 20;

/// Why bytes are not an acceptable MsgPack value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// The bytes end inside a value.
    #[error("the MsgPack ends inside a value")]
    Truncated,
    /// Bytes follow the value.
    #[error("{0} bytes follow the MsgPack value")]
    Trailing(usize),
    /// Nested deeper than [`DEPTH_MAX`].
    #[error("the MsgPack is nested deeper than {DEPTH_MAX}")]
    TooDeep,
    /// More values than [`ITEMS_MAX`].
    #[error("the MsgPack has more than {ITEMS_MAX} values")]
    TooMany,
    /// A byte that MsgPack never uses.
    #[error("the MsgPack has the reserved marker 0xc1")]
    Reserved,
    /// A top level that is neither a map nor an array, or a map whose keys are not strings.
    #[error("the MsgPack is neither a map with string keys nor an array")]
    Shape,
}

/// Returns a map with one more field, whose value is encoded already.
///
/// # Errors
/// When it is no map with string keys, or malformed.
pub fn with_field(map: &[u8], name: &str, value: &[u8]) -> Result<Vec<u8>, ScanError> {
    let TopLevel::Map(fields) = open(map)? else { return Err(ScanError::Shape) };
    let n_fields = u32::try_from(fields.len + 1).map_err(|_| ScanError::TooMany)?;
    let mut bytes = Vec::with_capacity(map.len() + name.len() + value.len() + MAP_OVERHEAD);
    rmp::encode::write_map_len(&mut bytes, n_fields).expect(TAKES_ALL);
    bytes.extend_from_slice(fields.rest);
    rmp::encode::write_str(&mut bytes, name).expect(TAKES_ALL);
    bytes.extend_from_slice(value);
    Ok(bytes)
}

/// A longer head of the map, and the head of a name.
const MAP_OVERHEAD: usize = 10;
const TAKES_ALL: &str = "a Vec takes everything";

/// The top level of a MsgPack value, as slices.
#[derive(Debug, Clone, Copy)]
pub enum TopLevel<'a> {
    /// A map.
    Map(Fields<'a>),
    /// An array.
    Array(Items<'a>),
}

/// The fields of a map, in order.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Fields<'a> {
    /// Returns the encoded value of the first field with this name.
    #[must_use]
    pub fn get(mut self, name: &str) -> Option<&'a [u8]> {
        self.find_map(|(key, value)| (key == name.as_bytes()).then_some(value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.len = self.len.checked_sub(1)?;
        let mut scanner = Scanner::new(self.rest);
        let key = scanner.text()?;
        let after_key = scanner.rest;
        scanner.skip().ok()?;
        let value = &after_key[..after_key.len() - scanner.rest.len()];
        self.rest = scanner.rest;
        Some((key, value))
    }
}

/// The items of an array, in order.
#[derive(Debug, Clone, Copy)]
pub struct Items<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Items<'a> {
    /// Returns the number of remaining items, and their encoding.
    #[must_use]
    pub const fn remaining(&self) -> (usize, &'a [u8]) {
        (self.len, self.rest)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        self.len = self.len.checked_sub(1)?;
        let before = self.rest;
        let mut scanner = Scanner::new(before);
        scanner.skip().ok()?;
        self.rest = scanner.rest;
        Some(&before[..before.len() - scanner.rest.len()])
    }
}

/// Checks that the bytes are one value within limits, and opens its top level.
pub fn open(bytes: &[u8]) -> Result<TopLevel<'_>, ScanError> {
    check(bytes)?;
    let mut scanner = Scanner::new(bytes);
    match scanner.head()? {
        Head::Map(len) => {
            let fields = Fields { rest: scanner.rest, len };
            if fields.count() == len { Ok(TopLevel::Map(fields)) } else { Err(ScanError::Shape) }
        }
        Head::Array(len) => Ok(TopLevel::Array(Items { rest: scanner.rest, len })),
        Head::Scalar(_) | Head::Text(_) => Err(ScanError::Shape),
    }
}

/// Checks that the bytes are exactly one value within limits.
pub fn check(bytes: &[u8]) -> Result<(), ScanError> {
    let mut scanner = Scanner::new(bytes);
    scanner.skip()?;
    if scanner.rest.is_empty() { Ok(()) } else { Err(ScanError::Trailing(scanner.rest.len())) }
}

/// Returns the text of an encoded string, or `None` if it is not a string or not UTF-8.
#[must_use]
pub fn as_text(value: &[u8]) -> Option<&str> {
    Scanner::new(value).text().and_then(|text| std::str::from_utf8(text).ok())
}

enum Head {
    /// A value without parts, with the number of bytes that follow the head.
    Scalar(usize),
    /// A string, with its length in bytes.
    Text(usize),
    Array(usize),
    Map(usize),
}

struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], ScanError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(ScanError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads a big-endian length of `width` bytes.
    fn length(&mut self, width: usize) -> Result<usize, ScanError> {
        Ok(self.take(width)?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }

    fn head(&mut self) -> Result<Head, ScanError> {
        let marker = Marker::from_u8(self.take(1)?[0]);
        Ok(match marker {
            Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::True | Marker::False => {
                Head::Scalar(0)
            }
            Marker::U8 | Marker::I8 => Head::Scalar(1),
            Marker::U16 | Marker::I16 | Marker::FixExt1 => Head::Scalar(2),
            Marker::FixExt2 => Head::Scalar(3),
            Marker::U32 | Marker::I32 | Marker::F32 => Head::Scalar(4),
            Marker::FixExt4 => Head::Scalar(5),
            Marker::U64 | Marker::I64 | Marker::F64 => Head::Scalar(8),
            Marker::FixExt8 => Head::Scalar(9),
            Marker::FixExt16 => Head::Scalar(17),
            Marker::FixStr(len) => Head::Text(usize::from(len)),
            Marker::Str8 => Head::Text(self.length(1)?),
            Marker::Str16 => Head::Text(self.length(2)?),
            Marker::Str32 => Head::Text(self.length(4)?),
            Marker::Bin8 => Head::Scalar(self.length(1)?),
            Marker::Bin16 => Head::Scalar(self.length(2)?),
            Marker::Bin32 => Head::Scalar(self.length(4)?),
            Marker::Ext8 => Head::Scalar(self.length(1)? + 1),
            Marker::Ext16 => Head::Scalar(self.length(2)? + 1),
            Marker::Ext32 => Head::Scalar(self.length(4)? + 1),
            Marker::FixArray(len) => Head::Array(usize::from(len)),
            Marker::Array16 => Head::Array(self.length(2)?),
            Marker::Array32 => Head::Array(self.length(4)?),
            Marker::FixMap(len) => Head::Map(usize::from(len)),
            Marker::Map16 => Head::Map(self.length(2)?),
            Marker::Map32 => Head::Map(self.length(4)?),
            Marker::Reserved => return Err(ScanError::Reserved),
        })
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        match self.head().ok()? {
            Head::Text(len) => self.take(len).ok(),
            Head::Scalar(_) | Head::Array(_) | Head::Map(_) => None,
        }
    }

    /// Skips one value. Uses its own stack, so nesting cannot overflow the thread's.
    fn skip(&mut self) -> Result<(), ScanError> {
        let mut open = [0_usize; DEPTH_MAX];
        let mut depth = 0;
        let mut n_items = 0;
        loop {
            n_items += 1;
            if n_items > ITEMS_MAX {
                return Err(ScanError::TooMany);
            }
            let n_parts = match self.head()? {
                Head::Scalar(len) | Head::Text(len) => {
                    self.take(len)?;
                    0
                }
                Head::Array(len) => len,
                Head::Map(len) => len.checked_mul(2).ok_or(ScanError::TooMany)?,
            };
            if n_parts > 0 {
                *open.get_mut(depth).ok_or(ScanError::TooDeep)? = n_parts;
                depth += 1;
                continue;
            }
            while depth > 0 {
                open[depth - 1] -= 1;
                if open[depth - 1] > 0 {
                    break;
                }
                depth -= 1;
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::Value;

    #[test]
    fn a_nest_deeper_than_the_limit_is_refused() {
        let nest = |depth: usize| [vec![0x91; depth], vec![0xc0]].concat();
        assert_eq!(check(&nest(DEPTH_MAX)), Ok(()));
        assert_eq!(check(&nest(DEPTH_MAX + 1)), Err(ScanError::TooDeep));
        assert_eq!(check(&nest(1_000_000)), Err(ScanError::TooDeep));
    }

    #[test]
    fn a_length_that_promises_more_than_there_is_is_refused() {
        for bytes in [&[0xdd, 0xff, 0xff, 0xff, 0xff][..], &[0xc6, 0x7f, 0, 0, 0, 1], &[0x82, 0xa1]]
        {
            assert_eq!(check(bytes), Err(ScanError::Truncated), "{bytes:x?}");
        }
        let many = [&[0xdd, 0x00, 0x20, 0x00, 0x00][..], &vec![0xc0; 0x20_0000]].concat();
        assert_eq!(check(&many), Err(ScanError::TooMany));
        assert_eq!(check(&[0xc0, 0xc0]), Err(ScanError::Trailing(1)));
        assert_eq!(check(&[0xc1]), Err(ScanError::Reserved));
        assert_eq!(check(&[]), Err(ScanError::Truncated));
    }

    #[test]
    fn a_field_is_found_wherever_it_stands() {
        let bytes = rmp_serde::to_vec_named(&serde_json::json!({
            "a": [1, {"tool": 2}], "tool": "ping", "z": null,
        }))
        .unwrap();
        let TopLevel::Map(fields) = open(&bytes).unwrap() else { panic!("a map") };
        assert_eq!(as_text(fields.get("tool").unwrap()), Some("ping"));
        assert!(fields.get("nothing").is_none());
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            let n_parts = open(&bytes).map_or(0, |top| match top {
                TopLevel::Map(fields) => fields.count(),
                TopLevel::Array(items) => items.count(),
            });
            prop_assert!(n_parts <= bytes.len());
        }

        #[test]
        fn whatever_passes_the_check_is_read_by_the_decoder_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..256)
        ) {
            if check(&bytes).is_ok() {
                drop(rmp_serde::from_slice::<Value>(&bytes));
            }
        }
    }
}
