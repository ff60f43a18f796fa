//! Templates.

/// Fills in each known `{name}` unchanged, and each `{name:json}` as a JSON string, which is also
/// valid in TOML and YAML. Works in one pass: filled-in text is not expanded again, and other
/// braces stay.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        filled.push_str(&rest[..start]);
        let from = &rest[start..];
        let found = values.iter().find_map(|(name, value)| place(from, name, value));
        match found {
            Some((value, after)) => {
                filled.push_str(&value);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = &from[1..];
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// Returns the value and the remaining text, if the text starts with the placeholder of this name.
fn place<'a>(text: &'a str, name: &str, value: &str) -> Option<(String, &'a str)> {
    let after = text.strip_prefix('{')?.strip_prefix(name)?;
    if let Some(after) = after.strip_prefix('}') {
        return Some((value.to_owned(), after));
    }
    let after = after.strip_prefix(":json}")?;
    Some((serde_json::Value::from(value).to_string(), after))
}

#[cfg(test)]
mod tests {
    use super::fill;

    /// Rule: a caller's text is never expanded as a template.
    #[test]
    fn places_are_filled_in_once() {
        let values = [("message", "say {inside}\n\"x\""), ("inside", "/mcp/bin/inside")];
        for (template, expected) in [
            ("{message}", "say {inside}\n\"x\""),
            ("{\"a\":{inside:json},\"b\":{}}", "{\"a\":\"/mcp/bin/inside\",\"b\":{}}"),
            ("{message:json}", r#""say {inside}\n\"x\"""#),
            ("{other} {inside} {", "{other} /mcp/bin/inside {"),
            ("{{inside}}", "{/mcp/bin/inside}"),
        ] {
            assert_eq!(fill(template, &values), expected, "{template}");
        }
    }
}
