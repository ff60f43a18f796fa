//! Checks the structure of a SoundFont 2 file: chunks inside the file, whole tables, indices that
//! rise and stay inside their table. A reader of a checked file allocates at most a small multiple
//! of its size.

use super::FontError;

/// A chunk's name and length.
const CHUNK_HEAD_BYTES: usize = 8;

/// The tables of the `pdta` list: name, bytes of a record, fewest records (the last one only ends
/// the table).
const TABLES: [(&[u8; 4], usize, usize); 9] = [
    (b"phdr", 38, 2),
    (b"pbag", 4, 2),
    (b"pmod", 10, 1),
    (b"pgen", 4, 1),
    (b"inst", 22, 2),
    (b"ibag", 4, 2),
    (b"imod", 10, 1),
    (b"igen", 4, 1),
    (b"shdr", 46, 2),
];

/// A part of the file, and its start.
#[derive(Clone, Copy)]
struct Part<'a> {
    at: usize,
    bytes: &'a [u8],
}

/// A table: a part with a whole number of records.
#[derive(Clone, Copy)]
struct Table<'a> {
    part: Part<'a>,
    record_bytes: usize,
}

/// An index between two tables: each record of `from` has an index at `offset`, into `into`.
struct Index<'a> {
    name: &'static str,
    from: Table<'a>,
    offset: usize,
    into: Table<'a>,
}

pub(super) fn check(file: &[u8]) -> Result<(), FontError> {
    let whole = Part { at: 0, bytes: file };
    let (name, riff, _) = whole.chunk()?;
    if &name != b"RIFF" {
        return malformed(0, "the file does not start with `RIFF`");
    }
    let mut lists = riff.form(b"sfbk")?;
    for form in [b"INFO", b"sdta", b"pdta"] {
        let (name, list, rest) = lists.chunk()?;
        if &name != b"LIST" {
            return malformed(lists.at, "a `LIST` chunk should be here");
        }
        let body = list.form(form)?;
        match form {
            b"pdta" => check_tables(body)?,
            _ => body.each_chunk(|_, _| Ok(()))?,
        }
        lists = rest;
    }
    Ok(())
}

fn check_tables(body: Part<'_>) -> Result<(), FontError> {
    let mut found: [Option<Table<'_>>; TABLES.len()] = [None; TABLES.len()];
    body.each_chunk(|name, part| {
        let Some(idx) = TABLES.iter().position(|(known, _, _)| **known == name) else {
            return Ok(());
        };
        let (_, record_bytes, records_min) = TABLES[idx];
        let table = Table { part, record_bytes };
        if !part.bytes.len().is_multiple_of(record_bytes) || table.len() < records_min {
            let name = String::from_utf8_lossy(&name);
            return malformed(part.at, format!("the table `{name}` is not whole"));
        }
        found[idx] = Some(table);
        Ok(())
    })?;
    let table = |wanted: &[u8; 4]| {
        let idx = TABLES.iter().position(|(known, _, _)| *known == wanted);
        idx.and_then(|idx| found[idx]).ok_or_else(|| FontError::Malformed {
            at: body.at,
            what: format!("the table `{}` is missing", String::from_utf8_lossy(wanted)),
        })
    };
    let (phdr, pbag, pgen) = (table(b"phdr")?, table(b"pbag")?, table(b"pgen")?);
    let (inst, ibag, igen) = (table(b"inst")?, table(b"ibag")?, table(b"igen")?);
    table(b"shdr")?;
    for index in [
        Index { name: "phdr", from: phdr, offset: 24, into: pbag },
        Index { name: "pbag", from: pbag, offset: 0, into: pgen },
        Index { name: "inst", from: inst, offset: 20, into: ibag },
        Index { name: "ibag", from: ibag, offset: 0, into: igen },
    ] {
        index.check()?;
    }
    Ok(())
}

impl Index<'_> {
    /// Each record owns the range from its index to the next one, so indices never fall: otherwise
    /// a small table could own another many times over.
    fn check(&self) -> Result<(), FontError> {
        let mut last = 0;
        for record in 0..self.from.len() {
            let at = record * self.from.record_bytes + self.offset;
            let bytes = &self.from.part.bytes[at..at + 2];
            let index = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
            if index < last || index >= self.into.len() {
                let what = format!("record {record} of `{}` points to {index}", self.name);
                return malformed(self.from.part.at + at, what);
            }
            last = index;
        }
        Ok(())
    }
}

impl Table<'_> {
    const fn len(&self) -> usize {
        self.part.bytes.len() / self.record_bytes
    }
}

impl<'a> Part<'a> {
    /// Reads the first chunk: its name, its body and the remaining part.
    fn chunk(self) -> Result<([u8; 4], Self, Self), FontError> {
        let Some((head, rest)) = self.bytes.split_at_checked(CHUNK_HEAD_BYTES) else {
            return malformed(self.at, "the file ends where a chunk should start");
        };
        let name = [head[0], head[1], head[2], head[3]];
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let Some((body, rest)) = rest.split_at_checked(size) else {
            let name = String::from_utf8_lossy(&name).into_owned();
            let what = format!("the chunk `{name}` claims {size} bytes, {} are left", rest.len());
            return malformed(self.at, what);
        };
        let body_at = self.at + CHUNK_HEAD_BYTES;
        Ok((name, Self { at: body_at, bytes: body }, Self { at: body_at + size, bytes: rest }))
    }

    /// Returns the part after the form's name, which must be this one.
    fn form(self, form: &[u8; 4]) -> Result<Self, FontError> {
        match self.bytes.split_at_checked(form.len()) {
            Some((name, bytes)) if name == form => Ok(Self { at: self.at + form.len(), bytes }),
            _ => {
                let name = String::from_utf8_lossy(form);
                malformed(self.at, format!("`{name}` should be here"))
            }
        }
    }

    fn each_chunk(
        self,
        mut seen: impl FnMut([u8; 4], Self) -> Result<(), FontError>,
    ) -> Result<(), FontError> {
        let mut left = self;
        while !left.bytes.is_empty() {
            let (name, body, rest) = left.chunk()?;
            seen(name, body)?;
            left = rest;
        }
        Ok(())
    }
}

fn malformed<T>(at: usize, what: impl Into<String>) -> Result<T, FontError> {
    Err(FontError::Malformed { at, what: what.into() })
}
