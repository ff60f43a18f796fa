//! Counts words.

/// Returns the number of words of a text.
pub fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_counted() {
        assert_eq!(super::count("a text  of five words"), 5);
    }
}
