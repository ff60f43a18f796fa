//! Text strings: escapes for letters outside ASCII.

/// A mark and the letters it changes, in pairs.
const ACCENTS: &[(char, &str)] = &[
    ('`', "AÀEÈIÌOÒUÙaàeèiìoòuù"),
    ('\'', "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyý"),
    ('^', "AÂEÊIÎOÔUÛYŶaâeêiîoôuûyŷ"),
    ('~', "AÃNÑOÕaãnñoõ"),
    ('"', "AÄEËIÏOÖUÜYŸaäeëiïoöuüyÿ"),
    ('c', "CÇcç"),
    ('r', "AÅaå"),
    ('/', "OØoø"),
    ('v', "CČSŠZŽEĚcčsšzžeě"),
    ('u', "AĂEĔaăeĕ"),
    ('H', "OŐUŰoőuű"),
];

/// Two letters that make one.
const LIGATURES: &[(&str, &str)] =
    &[("ss", "ß"), ("AE", "Æ"), ("ae", "æ"), ("OE", "Œ"), ("oe", "œ"), ("AA", "Å"), ("aa", "å")];

/// HTML names of characters that Latin-1 keyboards lack.
const ENTITIES: &[(&str, &str)] = &[
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("copy", "©"),
    ("eacute", "é"),
    ("egrave", "è"),
    ("agrave", "à"),
    ("aacute", "á"),
    ("auml", "ä"),
    ("ouml", "ö"),
    ("uuml", "ü"),
    ("Auml", "Ä"),
    ("Ouml", "Ö"),
    ("Uuml", "Ü"),
    ("szlig", "ß"),
    ("ccedil", "ç"),
    ("ntilde", "ñ"),
    ("aring", "å"),
    ("oslash", "ø"),
    ("aelig", "æ"),
    ("nbsp", "\u{a0}"),
];

/// Expands escapes: `\'e` is é, as are `&eacute;` and `\u00e9`; `\%` is a percent sign. Other text
/// stays.
#[must_use]
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '&']) {
        let (plain, escape) = rest.split_at(at);
        out.push_str(plain);
        let (sign, after) = escape.split_at(1);
        let found = if sign == "&" { entity(after) } else { backslash(after) };
        let (piece, n_bytes) = found.unwrap_or_else(|| (sign.to_owned(), 0));
        out.push_str(&piece);
        rest = &after[n_bytes..];
    }
    out.push_str(rest);
    out
}

/// Reads what follows a backslash, and returns its length in bytes.
fn backslash(rest: &str) -> Option<(String, usize)> {
    let mut chars = rest.chars();
    let mark = chars.next()?;
    if matches!(mark, '%' | '\\' | '&') {
        return Some((mark.to_string(), 1));
    }
    let hex_digits = match mark {
        'u' => 4,
        'U' => 8,
        _ => 0,
    };
    if let Some(hex) = rest.get(1..=hex_digits).filter(|_| hex_digits > 0)
        && let Some(c) = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32)
    {
        return Some((c.to_string(), 1 + hex_digits));
    }
    if let Some((two, one)) = LIGATURES.iter().find(|(two, _)| rest.starts_with(two)) {
        return Some(((*one).to_owned(), two.len()));
    }
    let letter = chars.next()?;
    let (_, letters) = ACCENTS.iter().find(|(known, _)| *known == mark)?;
    let letters: Vec<char> = letters.chars().collect();
    let pair = letters.chunks(2).find(|pair| pair[0] == letter)?;
    Some((pair[1].to_string(), mark.len_utf8() + letter.len_utf8()))
}

fn entity(rest: &str) -> Option<(String, usize)> {
    let end = rest.char_indices().take(12).find(|(_, c)| *c == ';').map(|(at, _)| at)?;
    let (_, text) = ENTITIES.iter().find(|(name, _)| *name == &rest[..end])?;
    Some(((*text).to_owned(), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ: ABC 2.1 "8.2 Text strings".
    #[test]
    fn escapes_stand_for_letters() {
        for (text, expected) in [
            (r"caf\'e", "café"),
            ("caf&eacute;", "café"),
            (r"caf\u00e9", "café"),
            (r"100\% \\ \&", r"100% \ &"),
            (r"\ss \AE \cc \/o", "ß Æ ç ø"),
            (r#"\"u \~n \^o"#, "ü ñ ô"),
            (r"a \q & b; \", r"a \q & b; \"),
            ("&unknown; é", "&unknown; é"),
        ] {
            assert_eq!(unescape(text), expected);
        }
    }
}
